// MatrixSolveLs on the GPU, in double precision: with `fast` by the normal equations and a Cholesky
// factor, else by singular values. Where the CPU finds a matrix of too low a rank, the result is
// NaN: a kernel cannot report it.
#include <algorithm>
#include <limits>
#include <memory>

#include "kernels/cuda/linear_algebra/batches.cuh"
#include "kernels/cuda/linear_algebra/solver.h"
#include "kernels/cuda/linear_algebra/svd.cuh"
#include "kernels/cuda/product.h"
#include "kernels/cuda/zeros.cuh"

namespace leat {
namespace {

using cuda::part_of;
using cuda::WorkspaceParts;

template <class From, class To>
__global__ void __launch_bounds__(cuda::threads_per_block)
    convert_kernel(int64_t elements, const From* from, To* to) {
  const int64_t i = static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
  if (i < elements) to[i] = static_cast<To>(from[i]);
}

template <class From, class To>
void enqueue_conversion(const Arguments& a, int64_t elements, const From* from, To* to) {
  cuda::launch(convert_kernel<From, To>, cuda::blocks_for(elements), cuda::threads_per_block, 0,
               cuda_stream(a), elements, from, to);
}

struct Problem {
  MatrixBatch matrix;  // [m, n]
  int64_t columns;     // of the right side
  size_t right;        // where it lies in the workspace, in double precision
};

// A product of each pair of matrices of two batches.
struct BatchedProduct {
  std::shared_ptr<const Product> product;
  size_t workspace;

  BatchedProduct(const KernelRequest& r, WorkspaceParts& parts, int64_t batch, int64_t m, int64_t n,
                 int64_t k, bool transpose_a, bool transpose_b = false)
      : product(make_product(r.device, {.dtype = DType::f64,
                                        .m = m,
                                        .n = n,
                                        .k = k,
                                        .transpose_a = transpose_a,
                                        .transpose_b = transpose_b,
                                        .batch = batch,
                                        .stride_a = m * k,
                                        .stride_b = k * n,
                                        .stride_out = m * n})),
        workspace(parts.add(product->workspace_bytes())) {}

  void run(const Arguments& a, const double* left, const double* right, double* out) const {
    product->run({left, right, out}, part_of<char>(a, workspace), *a.stream);
  }
};

// ---- By the normal equations, of the smaller of aᵀa and a aᵀ

// Adds to the diagonal, and keeps it.
__global__ void __launch_bounds__(cuda::threads_per_block)
    regularise_kernel(int64_t elements, int64_t n, double regulariser, double* gram,
                      double* diagonal) {
  const int64_t i = static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
  if (i >= elements) return;
  double& element = gram[i / n * n * n + i % n * (n + 1)];
  element += regulariser;
  diagonal[i] = element;
}

// A thread per matrix. A factor whose diagonal is little more than rounding errors has failed.
__global__ void __launch_bounds__(cuda::threads_per_block)
    find_deficient_kernel(int64_t count, int64_t n, const double* factors, const double* diagonal,
                          int32_t* failures) {
  const int64_t b = static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
  if (b >= count) return;
  for (int64_t i = 0; i < n; ++i) {
    const double l = factors[b * n * n + i * (n + 1)];
    if (!(l * l > 1e-15 * diagonal[b * n + i])) failures[b] = 1;
  }
}

class NormalEquations {
 public:
  NormalEquations(const KernelRequest& r, WorkspaceParts& parts, const Problem& problem)
      : problem_(problem),
        is_tall_(problem.matrix.m >= problem.matrix.n),
        extent_(std::min(problem.matrix.m, problem.matrix.n)),
        square_(r, parts, problem.matrix.count, extent_, extent_,
                std::max(problem.matrix.m, problem.matrix.n), is_tall_, !is_tall_),
        by_transpose_(r, parts, problem.matrix.count, problem.matrix.n, problem.columns,
                      problem.matrix.m, true) {
    const int64_t count = problem.matrix.count;
    const auto doubles = [&](int64_t of_each) {
      return parts.add(static_cast<size_t>(count * of_each) * sizeof(double));
    };
    factor_ = make_solver(r.device, {.kind = SolverKind::cholesky,
                                     .dtype = DType::f64,
                                     .n = extent_,
                                     .upper = true,
                                     .batch = count});
    for (const bool is_second : {false, true}) {
      triangles_[is_second ? 1 : 0] = make_solver(r.device, {.kind = SolverKind::solve_triangular,
                                                             .dtype = DType::f64,
                                                             .n = extent_,
                                                             .columns = problem.columns,
                                                             .upper = true,
                                                             .transposes = is_second,
                                                             .batch = count});
    }
    failures_ = parts.add(static_cast<size_t>(count) * sizeof(int32_t));
    gram_ = doubles(extent_ * extent_);
    diagonal_ = doubles(extent_);
    middle_ = doubles(extent_ * problem.columns);
    space_ = parts.add(std::max({factor_->workspace_bytes(), triangles_[0]->workspace_bytes(),
                                 triangles_[1]->workspace_bytes()}));
  }

  // out [count, n, columns] = the solutions for `matrix` [count, m, n].
  void run(const Arguments& a, const double* matrix, double regulariser, double* out) const {
    const int64_t count = problem_.matrix.count;
    double *const gram = part_of<double>(a, gram_), *const diagonal = part_of<double>(a, diagonal_);
    int32_t* const failures = part_of<int32_t>(a, failures_);
    char* const space = part_of<char>(a, space_);
    const double* right = part_of<double>(a, problem_.right);
    square_.run(a, matrix, matrix, gram);
    cuda::launch(regularise_kernel, cuda::blocks_for(count * extent_), cuda::threads_per_block, 0,
                 cuda_stream(a), count * extent_, extent_, regulariser, gram, diagonal);
    factor_->run({.a = gram, .failures = failures}, space, *a.stream);
    cuda::launch(find_deficient_kernel, cuda::blocks_for(count), cuda::threads_per_block, 0,
                 cuda_stream(a), count, extent_, gram, diagonal, failures);
    // L Lᵀ y = aᵀ b, and x = y; or L Lᵀ y = b, and x = aᵀ y.
    double* const y = is_tall_ ? out : part_of<double>(a, middle_);
    if (is_tall_) {
      by_transpose_.run(a, matrix, right, y);
    } else {
      cuda::check_cuda(
          cudaMemcpyAsync(y, right,
                          static_cast<size_t>(count * extent_ * problem_.columns) * sizeof(double),
                          cudaMemcpyDeviceToDevice, cuda_stream(a)),
          "cudaMemcpyAsync");
    }
    for (const auto& triangle : triangles_) triangle->run({.a = gram, .b = y}, space, *a.stream);
    if (!is_tall_) by_transpose_.run(a, matrix, y, out);
  }

  const int32_t* failures(const Arguments& a) const { return part_of<int32_t>(a, failures_); }

 private:
  Problem problem_;
  bool is_tall_;
  int64_t extent_;
  BatchedProduct square_, by_transpose_;
  std::shared_ptr<const Solver> factor_, triangles_[2];
  size_t failures_, gram_, diagonal_, middle_, space_;
};

// ---- By singular values: the shortest of all solutions

// y [count, k, columns] is divided by the values; what belongs to those that are 0 but for rounding
// errors becomes 0.
__global__ void __launch_bounds__(cuda::threads_per_block)
    divide_by_values_kernel(int64_t elements, int64_t k, int64_t columns, double relative_zero,
                            const double* values, double* y) {
  const int64_t i = static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
  if (i >= elements) return;
  const double value = values[i / columns], largest = values[i / (columns * k) * k];
  y[i] = value <= largest * relative_zero ? 0 : y[i] / value;
}

// V diag(1/s) Uᵀ b. The vectors are rows: those of one side times b, then those of the other,
// transposed.
class PseudoInverse {
 public:
  PseudoInverse(const KernelRequest& r, WorkspaceParts& parts, const Problem& problem)
      : problem_(problem),
        plan_(cuda::plan_svd(parts, problem.matrix, false, true)),
        by_left_(r, parts, problem.matrix.count, plan_.shape.vectors, problem.columns,
                 problem.matrix.m, false),
        by_right_(r, parts, problem.matrix.count, problem.matrix.n, problem.columns,
                  plan_.shape.vectors, true),
        middle_(parts.add(
            static_cast<size_t>(problem.matrix.count * plan_.shape.vectors * problem.columns) *
            sizeof(double))) {}

  void run(const Arguments& a, const double* matrix, double /*regulariser*/, double* out) const {
    const auto [count, k, length] = plan_.shape;
    double* const y = part_of<double>(a, middle_);
    cuda::enqueue_svd(a, plan_, matrix);
    const double *const longer = cuda::longer_vectors(a, plan_), *const square =
                                                                     cuda::square_vectors(a, plan_);
    by_left_.run(a, plan_.is_tall ? longer : square, part_of<double>(a, problem_.right), y);
    const int64_t elements = count * k * problem_.columns;
    cuda::launch(divide_by_values_kernel, cuda::blocks_for(elements), cuda::threads_per_block, 0,
                 cuda_stream(a), elements, k, problem_.columns,
                 2.2e-16 * static_cast<double>(length), cuda::singular_values(a, plan_), y);
    by_right_.run(a, plan_.is_tall ? square : longer, y, out);
  }

  const int32_t* failures(const Arguments& a) const { return cuda::svd_failures(a, plan_); }

 private:
  Problem problem_;
  cuda::SvdPlan plan_;
  BatchedProduct by_left_, by_right_;
  size_t middle_;
};

// ---- The op

void check_regulariser(double regulariser) {
  check(regulariser >= 0, "l2_regularizer must be >= 0.");
}

template <class T, class Method>
BoundKernel bind_least_squares(const KernelRequest& r) {
  const MatrixBatch e(r.inputs[0].shape);
  const int64_t columns = MatrixBatch(r.inputs[1].shape).n;
  const auto doubles = [](WorkspaceParts& parts, int64_t n) {
    return parts.add(static_cast<size_t>(n) * sizeof(double));
  };
  WorkspaceParts parts;
  const int64_t elements = e.count * e.m * e.n, of_right = e.count * e.m * columns,
                of_out = e.count * e.n * columns;
  const size_t matrix_at = doubles(parts, elements), out_at = doubles(parts, of_out);
  const Problem problem{e, columns, doubles(parts, of_right)};
  const Method method(r, parts, problem);
  return BoundKernel::of([=](const Arguments& a) {
           const double regulariser = *a.input<double>(2);
           check_regulariser(regulariser);
           double *const matrix = part_of<double>(a, matrix_at), *const out =
                                                                     part_of<double>(a, out_at);
           enqueue_conversion(a, elements, a.input<T>(0), matrix);
           enqueue_conversion(a, of_right, a.input<T>(1), part_of<double>(a, problem.right));
           method.run(a, matrix, regulariser, out);
           enqueue_conversion(a, of_out, out, a.output<T>());
           cuda::enqueue_invalidation(a, e.count, e.n * columns, method.failures(a), a.output<T>());
         })
      .with_workspace(parts.bytes());
}

template <class T>
BoundKernel prepare_least_squares(TypeTag<T>, const KernelRequest& r) {
  if (r.outputs[0].shape.elements() == 0) return {};
  if (r.inputs[0].shape.elements() == 0) return cuda::bind_zeros(r.outputs[0]);
  return r.attr<bool>("fast") ? bind_least_squares<T, NormalEquations>(r)
                              : bind_least_squares<T, PseudoInverse>(r);
}

std::vector<Kernel> kernels() {
  std::vector<Kernel> out = library_kernels(
      []<class T>(TypeTag<T> t, const KernelRequest& r) { return prepare_least_squares(t, r); });
  for (Kernel& kernel : out) kernel.host_inputs = {2};
  return out;
}

const OpKernels least_squares{"MatrixSolveLs", kernels()};

}  // namespace
}  // namespace leat
