// SparseTensorDenseMatMul on the GPU: the elements of the sparse matrix, sorted by the row of the
// product that they go to (scatter.cuh). A thread for each element of the product adds them in
// their order. Elements that lie outside of the matrix are left out.
#include "graph/op_def.h"
#include "kernels/cuda/sorting/scatter.cuh"
#include "kernels/cuda/zeros.cuh"
#include "kernels/elementwise.h"
#include "kernels/moves/moves.h"

namespace leat {
namespace cuda {
namespace {

struct SparseProduct {
  bool adjoint_a, adjoint_b;
  int64_t count, rows, columns, inner;

  explicit SparseProduct(const KernelRequest& r)
      : adjoint_a(r.attr<bool>("adjoint_a")),
        adjoint_b(r.attr<bool>("adjoint_b")),
        count(r.inputs[1].shape[0]),
        rows(r.outputs[0].shape[0]),
        columns(r.outputs[0].shape[1]),
        inner(r.inputs[3].shape[adjoint_b ? 1 : 0]) {}

  // Each pair of indices names a row of the product, or none if it lies outside.
  ScatterPlan plan() const {
    ScatterPlan plan{
        .naming = Naming::vector, .count = count, .slice = columns, .slices = rows, .indices = 0};
    const int row = adjoint_a ? 1 : 0;
    plan.vectors.depth = 2;
    plan.vectors.extents[row] = rows;
    plan.vectors.strides[row] = 1;
    plan.vectors.extents[1 - row] = inner;
    return plan;
  }
};

template <class T, class Index>
__global__ void __launch_bounds__(threads_per_block)
    product_kernel(SparseProduct of, SortedUpdates sorted, const Index* indices, const T* values,
                   const T* b, T* out) {
  const int64_t i = static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
  if (i >= of.count * of.columns) return;
  const int64_t first = i / of.columns, column = i % of.columns;
  const uint32_t row = sorted.slices[first];
  if (row >= of.rows || (first > 0 && sorted.slices[first - 1] == row)) return;
  T total = T(0);
  for (int64_t k = first; k < of.count && sorted.slices[k] == row; ++k) {
    const int64_t number = sorted.numbers[k];
    const int64_t at = indices[2 * number + (of.adjoint_a ? 0 : 1)];
    const T& factor = b[of.adjoint_b ? column * of.inner + at : at * of.columns + column];
    total = static_cast<T>(widened(total) + widened(values[number]) * widened(factor));
  }
  out[row * of.columns + column] = total;
}

template <class T, class Index>
BoundKernel bind(const KernelRequest& r) {
  const SparseProduct of(r);
  if (of.rows * of.columns == 0) return {};
  if (of.count == 0) return bind_zeros(r.outputs[0]);
  check(of.count < UINT32_MAX && of.rows < UINT32_MAX, r.node.op, " of ", of.count,
        " elements and ", of.rows, " rows is too large for a GPU: place the node on a CPU");
  return BoundKernel::of([of, index = r.inputs[0].dtype](const Arguments& a) {
           const cudaStream_t stream = cuda_stream(a);
           fill_elements(a, a.output<T>(), of.rows * of.columns);
           const SortedUpdates sorted =
               enqueue_sorted_updates(stream, of.plan(), index, a.inputs[0], a.workspace);
           launch(product_kernel<T, Index>, blocks_for(of.count * of.columns), threads_per_block, 0,
                  stream, of, sorted, a.input<Index>(0), a.input<T>(1), a.input<T>(3),
                  a.output<T>());
         })
      .with_workspace(sort_workspace(of.count));
}

const OpKernels sparse_product{"SparseTensorDenseMatMul",
                               typed_kernels("T", Types<float, double, half, bfloat16, int32_t>{},
                                             []<class T>(TypeTag<T>, const KernelRequest& r) {
                                               return r.inputs[0].dtype == DType::i64
                                                          ? bind<T, int64_t>(r)
                                                          : bind<T, int32_t>(r);
                                             })};

}  // namespace
}  // namespace cuda
}  // namespace leat
