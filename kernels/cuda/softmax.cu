// Softmax and LogSoftmax on the GPU: a block per row.
#include <limits>

#include "graph/op_def.h"
#include "kernels/cuda/row_reduce.cuh"

namespace leat {
namespace {

template <bool logarithm, class T>
__global__ void __launch_bounds__(cuda::max_row_threads)
    softmax_kernel(int64_t columns, const T* in, T* out) {
  using C = ComputeType<T>;
  __shared__ C shared[cuda::max_row_threads];
  const T* x = in + blockIdx.x * columns;
  T* y = out + blockIdx.x * columns;
  const cuda::RowTotals<C> totals = cuda::row_totals(x, columns, shared);
  const C log_sum = std::log(totals.sum);
  for (int64_t i = threadIdx.x; i < columns; i += blockDim.x) {
    const C below_max = cuda::widened(x[i]) - totals.max;
    y[i] = static_cast<T>(logarithm ? below_max - log_sum : std::exp(below_max) / totals.sum);
  }
}

template <bool logarithm>
BoundKernel prepare(const KernelRequest& request) {
  const Shape& shape = request.inputs[0].shape;
  const int64_t columns = shape[shape.rank() - 1];
  if (shape.elements() == 0) return {};
  const int64_t rows = shape.elements() / columns;
  BoundKernel bound = visit_type(FloatTypes{}, request.inputs[0].dtype, [&](auto tag) {
    using T = typename decltype(tag)::type;
    return BoundKernel::of([rows, columns](const Arguments& arguments) {
      cuda::launch(softmax_kernel<logarithm, T>, cuda::as_blocks(rows), cuda::row_threads(columns),
                   0, cuda_stream(arguments), columns, arguments.input<T>(0),
                   arguments.output<T>());
    });
  });
  bound.may_share = {{0, 0}};
  return bound;
}

template <bool logarithm>
std::vector<Kernel> kernels() {
  Kernel kernel;
  kernel.device = DeviceType::gpu;
  kernel.types = {{"T", FloatTypes::list()}};
  kernel.prepare = prepare<logarithm>;
  return {kernel};
}

const OpKernels softmax{"Softmax", kernels<false>()};
const OpKernels log_softmax{"LogSoftmax", kernels<true>()};

}  // namespace
}  // namespace leat
