// CheckNumerics on the GPU. It runs between segments, as in TensorFlow: what depends on the output
// is enqueued when the host knows that all numbers are finite, so that no variable is updated with
// others. No thread waits for that; the copy calls back.
#include "kernels/math/check_numerics.h"

#include <algorithm>
#include <cmath>
#include <memory>
#include <utility>

#include "graph/op_def.h"
#include "kernels/cuda/launch.cuh"
#include "kernels/cuda_launch.cuh"
#include "kernels/types.h"

namespace leat {
namespace {

using cuda::threads_per_block;

struct Found {
  int32_t nan, infinity;
};

// All threads that write, write the same. A thread reads several elements.
template <class T>
__global__ void __launch_bounds__(threads_per_block)
    check_kernel(int64_t n, const T* x, Found* found) {
  const int64_t threads = static_cast<int64_t>(gridDim.x) * blockDim.x;
  bool has_nan = false, has_infinity = false;
  for (int64_t i = static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x; i < n;
       i += threads) {
    const auto value = cuda::widened(x[i]);
    has_nan |= std::isnan(value);
    has_infinity |= std::isinf(value);
  }
  if (has_nan) found->nan = 1;
  if (has_infinity) found->infinity = 1;
}

template <class T>
void enqueue_check(const Tensor& x, Found* found, cudaStream_t stream) {
  constexpr int64_t most_blocks = 2048;
  const int64_t n = x.elements(), blocks = (n + threads_per_block - 1) / threads_per_block;
  cuda::launch(check_kernel<T>, cuda::as_blocks(std::min(blocks, most_blocks)), threads_per_block,
               0, stream, n, x.data<T>(), found);
}

void check_numerics(ExecuteContext& c, std::function<void(Status)> done) {
  const Tensor x = c.input(0);
  c.set_output(0, x);
  if (x.elements() == 0) return done({});
  Device& device = c.device();
  const cudaStream_t stream = cuda_stream(device.stream());
  const std::shared_ptr<Buffer> on_device = device.allocate(sizeof(Found));
  cuda::check_cuda(cudaMemsetAsync(on_device->data(), 0, sizeof(Found), stream), "cudaMemsetAsync");
  visit_type(FloatTypes{}, x.dtype(), [&]<class T>(TypeTag<T>) {
    enqueue_check<T>(x, static_cast<Found*>(on_device->data()), stream);
    return true;
  });
  const auto found = std::make_shared<Found>();
  device.copy_to_host(on_device->data(), found.get(), sizeof(Found),
                      [x, on_device, found, message = c.node().attr<std::string>("message"),
                       done = std::move(done)](const Status& copied) {
                        done(copied.is_ok()
                                 ? status_of_numbers(message, found->nan != 0, found->infinity != 0)
                                 : copied);
                      });
}

const OpKernels kernels{"CheckNumerics",
                        {{.device = DeviceType::gpu,
                          .types = {{"T", FloatTypes::list()}},
                          .execute_async = check_numerics}}};

}  // namespace
}  // namespace leat
