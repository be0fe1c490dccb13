// Bucketize on the GPU: a thread per number searches the boundaries.
#include <algorithm>
#include <memory>

#include "core/memory/memory_owner.h"
#include "graph/op_def.h"
#include "kernels/cuda/launch.cuh"
#include "kernels/cuda_launch.cuh"
#include "kernels/types.h"

namespace leat {
namespace {

using cuda::threads_per_block;
using ValueTypes = Types<int32_t, int64_t, float, double>;

// The number of boundaries that the value is not below: all of them for NaN, as on the CPU.
template <class T>
__global__ void __launch_bounds__(threads_per_block)
    bucketize_kernel(int64_t n, int count, const float* boundaries, const T* in, int32_t* out) {
  const int64_t i = static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
  if (i >= n) return;
  const T value = in[i];
  int begin = 0, end = count;
  while (begin < end) {
    const int middle = begin + (end - begin) / 2;
    if (value < boundaries[middle]) {
      end = middle;
    } else {
      begin = middle + 1;
    }
  }
  out[i] = begin;
}

// In the GPU's memory.
std::shared_ptr<Buffer> upload(const std::vector<float>& numbers, Device& device) {
  const size_t bytes = numbers.size() * sizeof(float);
  const MemoryOwner owner(MemoryUse::constant);
  const std::shared_ptr<Buffer> there = device.allocate(bytes);
  const auto here = std::make_shared<const std::vector<float>>(numbers);
  device.copy_from_host(here->data(), there->data(), bytes, [here, there](const Status&) {});
  return there;
}

BoundKernel prepare(const KernelRequest& r) {
  const auto& boundaries = r.attr<std::vector<float>>("boundaries");
  check(std::is_sorted(boundaries.begin(), boundaries.end()), "Expected sorted boundaries");
  const int64_t n = r.inputs[0].shape.elements();
  if (n == 0) return {};
  const int count = static_cast<int>(boundaries.size());
  const std::shared_ptr<Buffer> there = upload(boundaries, r.device);
  return visit_type(ValueTypes{}, r.inputs[0].dtype, [&](auto tag) {
    using T = typename decltype(tag)::type;
    return BoundKernel::of([=](const Arguments& a) {
      cuda::launch(bucketize_kernel<T>, cuda::blocks_for(n), threads_per_block, 0, cuda_stream(a),
                   n, count, static_cast<const float*>(there->data()), a.input<T>(0),
                   a.output<int32_t>());
    });
  });
}

const OpKernels kernels{
    "Bucketize",
    {{.device = DeviceType::gpu, .types = {{"T", ValueTypes::list()}}, .prepare = prepare}}};

}  // namespace
}  // namespace leat
