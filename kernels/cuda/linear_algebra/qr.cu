// Qr on the GPU, by Householder reflections (solver.h), which give the CPU's signs.
#include <algorithm>
#include <memory>

#include "kernels/cuda/linear_algebra/batches.cuh"
#include "kernels/cuda/linear_algebra/solver.h"

namespace leat {
namespace {

using cuda::part_of;

// r [k, n], row-major, of the upper triangles of column-major matrices [m, n].
template <class T>
__global__ void __launch_bounds__(cuda::threads_per_block)
    take_r_kernel(int64_t elements, int64_t m, int64_t n, int64_t k, const T* factors, T* r) {
  const int64_t at = static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
  if (at >= elements) return;
  const int64_t j = at % n, i = at / n % k, b = at / (n * k);
  r[at] = i <= j ? factors[(b * n + j) * m + i] : T(0);
}

template <class T>
BoundKernel prepare_qr(TypeTag<T>, const KernelRequest& r) {
  const MatrixBatch e(r.inputs[0].shape), q(r.outputs[0].shape);
  const int64_t m = e.m, n = e.n, k = q.n, count = e.count;
  const int64_t r_elements = r.outputs[1].shape.elements();
  if (r.outputs[0].shape.elements() == 0 && r_elements == 0) return {};
  if (n == 0) {  // of nothing: q is the unit matrix
    return BoundKernel::of([=, elements = r.outputs[0].shape.elements()](const Arguments& a) {
      cuda::enqueue_unit(a, elements, m, k, a.output<T>(0));
    });
  }
  const std::shared_ptr<const Solver> solver = make_solver(
      r.device,
      {.kind = SolverKind::qr, .dtype = dtype_of<T>, .m = m, .n = n, .columns = k, .batch = count});
  cuda::WorkspaceParts parts;
  const size_t matrix_at = parts.add(static_cast<size_t>(count * m * n) * sizeof(T)),
               q_at = parts.add(static_cast<size_t>(count * m * k) * sizeof(T)),
               solver_at = parts.add(solver->workspace_bytes());
  return BoundKernel::of([=](const Arguments& a) {
           T *const matrix = part_of<T>(a, matrix_at), *const columns = part_of<T>(a, q_at);
           cuda::enqueue_transposed(a, count, m, n, m * n, a.input<T>(0), matrix);
           solver->run({.a = matrix, .b = columns}, part_of<char>(a, solver_at), *a.stream);
           cuda::enqueue_transposed(a, count, k, m, k * m, columns, a.output<T>(0));
           cuda::launch(take_r_kernel<T>, cuda::blocks_for(r_elements), cuda::threads_per_block, 0,
                        cuda_stream(a), r_elements, m, n, k, matrix, a.output<T>(1));
         })
      .with_workspace(parts.bytes());
}

const OpKernels qr{"Qr", library_kernels([]<class T>(TypeTag<T> t, const KernelRequest& r) {
                     return prepare_qr(t, r);
                   })};

}  // namespace
}  // namespace leat
