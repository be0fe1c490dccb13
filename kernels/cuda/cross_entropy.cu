// Softmax cross-entropy on the GPU: a block per row computes the loss and its derivative with
// respect to the logits.
#include <limits>

#include "graph/op_def.h"
#include "kernels/cuda/row_reduce.cuh"

namespace leat {
namespace {

// How to step through features or labels, which TensorFlow broadcasts to each other: from row to
// row, from column to column. 0 repeats.
struct Steps {
  int64_t row, column;

  Steps(const Shape& shape, const Shape& both) {
    const int64_t rows = shape.rank() < 2 ? 1 : shape[0],
                  columns = shape.rank() < 1 ? 1 : shape[shape.rank() - 1];
    row = rows == both[0] ? columns : 0;
    column = columns == both[1] ? 1 : 0;
  }
};

template <class T>
__global__ void __launch_bounds__(cuda::max_row_threads)
    dense_kernel(int64_t columns, Steps x_steps, Steps label_steps, const T* features,
                 const T* labels, T* loss, T* backprop) {
  using C = ComputeType<T>;
  __shared__ C shared[cuda::max_row_threads];
  const T* x = features + blockIdx.x * x_steps.row;
  const T* label = labels + blockIdx.x * label_steps.row;
  T* out = backprop + blockIdx.x * columns;
  const cuda::RowTotals<C> totals = cuda::row_totals(x, columns, shared, x_steps.column);
  const C log_sum = std::log(totals.sum);
  C share = 0;
  for (int64_t i = threadIdx.x; i < columns; i += blockDim.x) {
    const C value = cuda::widened(x[i * x_steps.column]);
    const C expected = cuda::widened(label[i * label_steps.column]);
    // A probability of 0 adds nothing, even where the logit is infinite.
    if (expected != C(0)) share += expected * (log_sum + (totals.max - value));
    out[i] = static_cast<T>(std::exp(value - totals.max) / totals.sum - expected);
  }
  const C total = cuda::reduce_block(share, shared, [](C a, C b) { return a + b; });
  if (threadIdx.x == 0) loss[blockIdx.x] = static_cast<T>(total);
}

// A label out of range cannot be reported from here: its row becomes NaN, as in TensorFlow.
template <class T, class Label>
__global__ void __launch_bounds__(cuda::max_row_threads)
    sparse_kernel(int64_t columns, const T* features, const Label* labels, T* loss, T* backprop) {
  using C = ComputeType<T>;
  __shared__ C shared[cuda::max_row_threads];
  const T* x = features + blockIdx.x * columns;
  T* out = backprop + blockIdx.x * columns;
  const int64_t label = labels[blockIdx.x];
  const bool is_valid = label >= 0 && label < columns;
  const cuda::RowTotals<C> totals = cuda::row_totals(x, columns, shared);
  const C nan = std::numeric_limits<C>::quiet_NaN();
  if (threadIdx.x == 0) {
    loss[blockIdx.x] = static_cast<T>(
        is_valid ? std::log(totals.sum) + (totals.max - cuda::widened(x[label])) : nan);
  }
  for (int64_t i = threadIdx.x; i < columns; i += blockDim.x) {
    const C probability = std::exp(cuda::widened(x[i]) - totals.max) / totals.sum;
    out[i] = static_cast<T>(is_valid ? probability - C(i == label ? 1 : 0) : nan);
  }
}

BoundKernel prepare_dense(const KernelRequest& request) {
  const Shape& shape = request.outputs[1].shape;
  const int64_t rows = shape[0];
  const int64_t columns = shape[1];
  if (rows == 0) return {};
  const Steps x(request.inputs[0].shape, shape), label(request.inputs[1].shape, shape);
  return visit_type(FloatTypes{}, request.inputs[0].dtype, [&](auto tag) {
    using T = typename decltype(tag)::type;
    return BoundKernel::of([rows, columns, x, label](const Arguments& a) {
      cuda::launch(dense_kernel<T>, cuda::as_blocks(rows), cuda::row_threads(columns), 0,
                   cuda_stream(a), columns, x, label, a.input<T>(0), a.input<T>(1), a.output<T>(0),
                   a.output<T>(1));
    });
  });
}

BoundKernel prepare_sparse(const KernelRequest& request) {
  const Shape& shape = request.outputs[1].shape;
  const int64_t rows = shape[0];
  const int64_t columns = shape[1];
  if (rows == 0) return {};
  return visit_type(FloatTypes{}, request.inputs[0].dtype, [&](auto tag) {
    using T = typename decltype(tag)::type;
    return visit_type(Types<int32_t, int64_t>{}, request.inputs[1].dtype, [&](auto label_tag) {
      using Label = typename decltype(label_tag)::type;
      return BoundKernel::of([rows, columns](const Arguments& a) {
        cuda::launch(sparse_kernel<T, Label>, cuda::as_blocks(rows), cuda::row_threads(columns), 0,
                     cuda_stream(a), columns, a.input<T>(0), a.input<Label>(1), a.output<T>(0),
                     a.output<T>(1));
      });
    });
  });
}

std::vector<Kernel> kernels(Prepare prepare) {
  Kernel kernel;
  kernel.device = DeviceType::gpu;
  kernel.types = {{"T", FloatTypes::list()}};
  kernel.prepare = std::move(prepare);
  return {kernel};
}

const OpKernels dense{"SoftmaxCrossEntropyWithLogits", kernels(prepare_dense)};
const OpKernels sparse{"SparseSoftmaxCrossEntropyWithLogits", kernels(prepare_sparse)};

}  // namespace
}  // namespace leat
