// Equations with square matrices on the GPU: Cholesky, MatrixTriangularSolve, MatrixSolve,
// MatrixInverse, and determinants. Solvers (solver.h) see a row-major matrix as its transpose.
#include <cmath>
#include <memory>

#include "kernels/cuda/linear_algebra/batches.cuh"
#include "kernels/cuda/linear_algebra/solver.h"
#include "kernels/cuda/row_reduce.cuh"
#include "kernels/linear_algebra/matrix_batch.h"
#include "kernels/moves/cuda_moves.cuh"

namespace leat {
namespace {

using cuda::part_of;
using cuda::WorkspaceParts;

// Unless they are the same memory.
void copy_bytes(const Arguments& a, const void* from, void* to, size_t bytes) {
  if (from == to) return;
  cuda::check_cuda(cudaMemcpyAsync(to, from, bytes, cudaMemcpyDeviceToDevice, cuda_stream(a)),
                   "cudaMemcpyAsync");
}

// ---- Cholesky

// A thread per matrix. NaN anywhere in the triangle that is read reaches the last element.
template <class T>
__global__ void __launch_bounds__(cuda::threads_per_block)
    find_indefinite_kernel(int64_t count, int64_t n, const T* factors, int32_t* failures) {
  const int64_t b = static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
  if (b < count && !(factors[(b + 1) * n * n - 1] > 0)) failures[b] = 1;
}

// Zeros above the diagonal; the rest NaN if there is no factor.
template <class T>
__global__ void __launch_bounds__(cuda::threads_per_block)
    finish_cholesky_kernel(int64_t elements, int64_t n, const int32_t* failures, T* factors) {
  const int64_t i = static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
  if (i >= elements) return;
  if (i % n > i / n % n) {
    factors[i] = T(0);
  } else if (failures[i / (n * n)] != 0) {
    factors[i] = std::numeric_limits<T>::quiet_NaN();
  }
}

template <class T>
BoundKernel prepare_cholesky(TypeTag<T>, const KernelRequest& r) {
  const MatrixBatch e(r.inputs[0].shape);
  const int64_t elements = r.outputs[0].shape.elements();
  if (elements == 0) return {};
  const std::shared_ptr<const Solver> solver = make_solver(r.device, {.kind = SolverKind::cholesky,
                                                                      .dtype = dtype_of<T>,
                                                                      .n = e.n,
                                                                      .upper = true,
                                                                      .batch = e.count});
  WorkspaceParts parts;
  const size_t failures_at = parts.add(static_cast<size_t>(e.count) * sizeof(int32_t)),
               solver_at = parts.add(solver->workspace_bytes());
  return BoundKernel::of([=](const Arguments& a) {
           int32_t* const failures = part_of<int32_t>(a, failures_at);
           T* const out = a.output<T>();
           copy_bytes(a, a.inputs[0], out, static_cast<size_t>(elements) * sizeof(T));
           solver->run({.a = out, .failures = failures}, part_of<char>(a, solver_at), *a.stream);
           cuda::launch(find_indefinite_kernel<T>, cuda::blocks_for(e.count),
                        cuda::threads_per_block, 0, cuda_stream(a), e.count, e.n, out, failures);
           cuda::launch(finish_cholesky_kernel<T>, cuda::blocks_for(elements),
                        cuda::threads_per_block, 0, cuda_stream(a), elements, e.n, failures, out);
         })
      .with_workspace(parts.bytes())
      .sharing(0, 0);
}

const OpKernels cholesky{"Cholesky",
                         library_kernels([]<class T>(TypeTag<T> t, const KernelRequest& r) {
                           return prepare_cholesky(t, r);
                         })};

// ---- MatrixTriangularSolve

// Matrices of `elements`, each as often as the batch axes of `out` repeat it.
StridedCopy repeated(const Shape& batch, const Shape& out, int64_t elements) {
  std::vector<StridedCopy::Axis> axes;
  const std::vector<int64_t> from = strides_of(batch), to = strides_of(out);
  const int added = out.rank() - batch.rank();
  for (int axis = 0; axis < out.rank(); ++axis) {
    const bool repeats = axis < added || batch[axis - added] == 1;
    axes.push_back({out[axis], repeats ? 0 : from[axis - added] * elements, to[axis] * elements});
  }
  axes.push_back({elements, 1, 1});
  return StridedCopy(axes);
}

template <class T>
BoundKernel prepare_triangular(TypeTag<T>, const KernelRequest& r) {
  const Shape &matrix = r.inputs[0].shape, &rhs = r.inputs[1].shape, &out = r.outputs[0].shape;
  if (out.elements() == 0) return {};
  const MatrixBatch of_matrix(matrix), of_rhs(rhs), of_out(out);
  const int64_t n = of_matrix.n, columns = of_rhs.n;
  const bool shares = of_matrix.count == 1, is_spread = !shares && of_matrix.count < of_out.count;
  // A row-major triangle is the other one of the transpose, and x op(aᵀ)ᵀ stands for op(a) x.
  const std::shared_ptr<const Solver> solver =
      make_solver(r.device, {.kind = SolverKind::solve_triangular,
                             .dtype = dtype_of<T>,
                             .n = n,
                             .columns = columns,
                             .upper = r.attr<bool>("lower"),
                             .transposes = r.attr<bool>("adjoint"),
                             .batch = of_out.count,
                             .shares_a = shares});
  const StridedCopy spread_matrix = repeated(batch_of(matrix), batch_of(out), n * n),
                    spread_rhs = repeated(batch_of(rhs), batch_of(out), n * columns);
  WorkspaceParts parts;
  const size_t matrix_at =
                   parts.add(is_spread ? static_cast<size_t>(of_out.count * n * n) * sizeof(T) : 0),
               solver_at = parts.add(solver->workspace_bytes());
  BoundKernel kernel = BoundKernel::of([=](const Arguments& a) {
    void* triangle = a.inputs[0];
    if (is_spread) {
      triangle = part_of<T>(a, matrix_at);
      cuda::enqueue_copy(spread_matrix, a, sizeof(T), a.inputs[0], triangle);
    }
    if (a.inputs[1] != a.outputs[0])
      cuda::enqueue_copy(spread_rhs, a, sizeof(T), a.inputs[1], a.outputs[0]);
    solver->run({.a = triangle, .b = a.outputs[0]}, part_of<char>(a, solver_at), *a.stream);
  });
  kernel.workspace_bytes = parts.bytes();
  if (of_rhs.count == of_out.count) kernel.may_share = {{0, 1}};
  return kernel;
}

const OpKernels triangular_solve{"MatrixTriangularSolve",
                                 library_kernels([]<class T>(TypeTag<T> t, const KernelRequest& r) {
                                   return prepare_triangular(t, r);
                                 })};

// ---- MatrixSolve and MatrixInverse. Where the CPU finds a matrix that is not invertible, the
// result is NaN: a kernel cannot report it.

template <class T>
BoundKernel prepare_solve(TypeTag<T>, const KernelRequest& r) {
  if (r.outputs[0].shape.elements() == 0) return {};
  const MatrixBatch e(r.inputs[0].shape), of_rhs(r.inputs[1].shape);
  const int64_t n = e.n, columns = of_rhs.n, count = e.count;
  const std::shared_ptr<const Solver> solver =
      make_solver(r.device, {.kind = SolverKind::solve,
                             .dtype = dtype_of<T>,
                             .n = n,
                             .columns = columns,
                             .transposes = !r.attr<bool>("adjoint"),
                             .batch = count});
  const size_t matrix_bytes = static_cast<size_t>(count * n * n) * sizeof(T);
  WorkspaceParts parts;
  const size_t failures_at = parts.add(static_cast<size_t>(count) * sizeof(int32_t)),
               matrix_at = parts.add(matrix_bytes),
               right_at = parts.add(static_cast<size_t>(count * n * columns) * sizeof(T)),
               solver_at = parts.add(solver->workspace_bytes());
  return BoundKernel::of([=](const Arguments& a) {
           int32_t* const failures = part_of<int32_t>(a, failures_at);
           T *const matrix = part_of<T>(a, matrix_at), *const right = part_of<T>(a, right_at);
           copy_bytes(a, a.inputs[0], matrix, matrix_bytes);
           cuda::enqueue_transposed(a, count, n, columns, n * columns, a.input<T>(1), right);
           solver->run({.a = matrix, .b = right, .failures = failures}, part_of<char>(a, solver_at),
                       *a.stream);
           cuda::enqueue_transposed(a, count, columns, n, n * columns, right, a.output<T>());
           cuda::enqueue_invalidation(a, count, n * columns, failures, a.output<T>());
         })
      .with_workspace(parts.bytes())
      .sharing(0, 1);
}

// The solver's x is the transpose of the inverse's transpose: the inverse, row-major.
template <class T>
BoundKernel prepare_inverse(TypeTag<T>, const KernelRequest& r) {
  const int64_t elements = r.outputs[0].shape.elements();
  if (elements == 0) return {};
  const MatrixBatch e(r.inputs[0].shape);
  const std::shared_ptr<const Solver> solver =
      make_solver(r.device, {.kind = SolverKind::solve,
                             .dtype = dtype_of<T>,
                             .n = e.n,
                             .columns = e.n,
                             .transposes = r.attr<bool>("adjoint"),
                             .batch = e.count});
  const size_t bytes = static_cast<size_t>(elements) * sizeof(T);
  WorkspaceParts parts;
  const size_t failures_at = parts.add(static_cast<size_t>(e.count) * sizeof(int32_t)),
               matrix_at = parts.add(bytes), solver_at = parts.add(solver->workspace_bytes());
  return BoundKernel::of([=](const Arguments& a) {
           int32_t* const failures = part_of<int32_t>(a, failures_at);
           T* const matrix = part_of<T>(a, matrix_at);
           copy_bytes(a, a.inputs[0], matrix, bytes);
           cuda::enqueue_unit(a, elements, e.n, e.n, a.output<T>());
           solver->run({.a = matrix, .b = a.outputs[0], .failures = failures},
                       part_of<char>(a, solver_at), *a.stream);
           cuda::enqueue_invalidation(a, e.count, e.n * e.n, failures, a.output<T>());
         })
      .with_workspace(parts.bytes())
      .sharing(0, 0);
}

const OpKernels solve{"MatrixSolve",
                      library_kernels([]<class T>(TypeTag<T> t, const KernelRequest& r) {
                        return prepare_solve(t, r);
                      })};
const OpKernels inverse{"MatrixInverse",
                        library_kernels([]<class T>(TypeTag<T> t, const KernelRequest& r) {
                          return prepare_inverse(t, r);
                        })};

// ---- Determinants

constexpr int determinant_threads = 128;

LEAT_DEVICE double sign_of(double x) { return x > 0 ? 1 : x < 0 ? -1 : x; }

// A block per matrix multiplies the diagonal of its U. Without `logs` all of it, else the signs,
// and it adds up the logarithms. A matrix that is not invertible has a 0 there.
template <class T>
__global__ void __launch_bounds__(determinant_threads)
    determinant_kernel(int64_t n, const T* factors, const int64_t* pivots, const int32_t* failures,
                       T* products, T* logs) {
  __shared__ double shared[determinant_threads];
  const int64_t b = blockIdx.x;
  double product = n > 0 && failures[b] != 0 && threadIdx.x == 0 ? 0 : 1, log = 0;
  for (int64_t i = threadIdx.x; i < n; i += blockDim.x) {
    const double pivot = factors[b * n * n + i * (n + 1)];
    product *= logs == nullptr ? pivot : sign_of(pivot);
    if (pivots[b * n + i] != i + 1) product = -product;
    log += std::log(std::abs(pivot));
  }
  product = cuda::reduce_block(product, shared, [](double x, double y) { return x * y; });
  log = cuda::reduce_block(log, shared, [](double x, double y) { return x + y; });
  if (threadIdx.x != 0) return;
  products[b] = static_cast<T>(product);
  if (logs != nullptr)
    logs[b] = static_cast<T>(product == 0 ? -std::numeric_limits<double>::infinity() : log);
}

template <class T>
BoundKernel bind_determinant(const KernelRequest& r, bool is_log) {
  const MatrixBatch e(r.inputs[0].shape);
  if (r.outputs[0].shape.elements() == 0) return {};
  const std::shared_ptr<const Solver> solver =
      e.n == 0
          ? nullptr
          : make_solver(r.device,
                        {.kind = SolverKind::lu, .dtype = dtype_of<T>, .n = e.n, .batch = e.count});
  const size_t bytes = static_cast<size_t>(e.count * e.n * e.n) * sizeof(T);
  WorkspaceParts parts;
  const size_t failures_at = parts.add(static_cast<size_t>(e.count) * sizeof(int32_t)),
               pivots_at = parts.add(static_cast<size_t>(e.count * e.n) * sizeof(int64_t)),
               matrix_at = parts.add(bytes),
               solver_at = parts.add(solver == nullptr ? 0 : solver->workspace_bytes());
  return BoundKernel::of([=](const Arguments& a) {
           int32_t* const failures = part_of<int32_t>(a, failures_at);
           // Of nothing, these parts are empty.
           int64_t* const pivots = solver == nullptr ? nullptr : part_of<int64_t>(a, pivots_at);
           T* const matrix = solver == nullptr ? nullptr : part_of<T>(a, matrix_at);
           if (solver != nullptr) {
             copy_bytes(a, a.inputs[0], matrix, bytes);
             solver->run({.a = matrix, .pivots = pivots, .failures = failures},
                         part_of<char>(a, solver_at), *a.stream);
           }
           cuda::launch(determinant_kernel<T>, cuda::as_blocks(e.count), determinant_threads, 0,
                        cuda_stream(a), e.n, matrix, pivots, failures, a.output<T>(0),
                        is_log ? a.output<T>(1) : nullptr);
         })
      .with_workspace(parts.bytes());
}

const OpKernels determinant{"MatrixDeterminant",
                            library_kernels([]<class T>(TypeTag<T>, const KernelRequest& r) {
                              return bind_determinant<T>(r, false);
                            })};
const OpKernels log_determinant{"LogMatrixDeterminant",
                                library_kernels([]<class T>(TypeTag<T>, const KernelRequest& r) {
                                  return bind_determinant<T>(r, true);
                                })};

}  // namespace
}  // namespace leat
