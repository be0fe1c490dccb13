// Solvers where there is no cuSOLVER: the CPU's routines, in stream order.
#include <algorithm>
#include <cmath>
#include <vector>

#include "core/visit_dtype.h"
#include "kernels/cuda/device/refuse_recording.h"
#include "kernels/cuda/linear_algebra/solver.h"
#include "kernels/linear_algebra/decomposition.h"
#include "kernels/types.h"
#include "tests/support/cuda/include/cuda_runtime.h"

namespace leat {
namespace {

using Matrix = std::vector<double>;  // row-major

template <class T>
Matrix read(const T* columns_first, int64_t rows, int64_t columns) {
  return adjoint_of(Matrix(columns_first, columns_first + rows * columns), columns, rows);
}

template <class T>
void write(const Matrix& from, int64_t rows, int64_t columns, T* columns_first) {
  narrow(adjoint_of(from, rows, columns), columns_first);
}

// Like a library that looks for pivots that are not positive, but not for NaN.
template <class T>
void factor_cholesky(const SolverShape& s, T* a, int32_t* failure) {
  const auto place = [&](int64_t i, int64_t j) { return s.upper ? i * s.n + j : j * s.n + i; };
  Matrix l(s.n * s.n);
  *failure = 0;
  for (int64_t i = 0; i < s.n; ++i) {
    for (int64_t j = 0; j <= i; ++j) {
      double rest = a[place(i, j)];
      for (int64_t k = 0; k < j; ++k) rest -= l[i * s.n + k] * l[j * s.n + k];
      if (i == j && rest <= 0) {
        *failure = static_cast<int32_t>(i + 1);
        return;
      }
      l[i * s.n + j] = i == j ? std::sqrt(rest) : rest / l[j * (s.n + 1)];
      a[place(i, j)] = static_cast<T>(l[i * s.n + j]);
    }
  }
}

template <class T>
Lu<double> factor_lu(const SolverShape& s, T* a, int64_t* pivots, int32_t* failure) {
  const Lu<double> lu(read(a, s.n, s.n), s.n);
  write(lu.a, s.n, s.n, a);
  *failure = 0;
  for (int64_t i = 0; i < s.n && *failure == 0; ++i)
    if (lu.a[i * (s.n + 1)] == 0) *failure = static_cast<int32_t>(i + 1);
  if (pivots == nullptr) return lu;
  std::vector<int64_t> order(s.n);  // which row is where
  for (int64_t i = 0; i < s.n; ++i) order[i] = i;
  for (int64_t i = 0; i < s.n; ++i) {
    const auto found = std::find(order.begin() + i, order.end(), lu.rows[i]);
    pivots[i] = found - order.begin() + 1;
    std::swap(order[i], *found);
  }
  return lu;
}

// With op(a) = aᵀ: Uᵀ (Lᵀ P x) = b.
template <class T>
void solve(const SolverShape& s, const Lu<double>& lu, T* b) {
  const Matrix right = read(b, s.n, s.columns);
  if (!s.transposes) return write(lu.solve(right, s.columns), s.n, s.columns, b);
  Matrix lower = adjoint_of(lu.a, s.n, s.n), upper = lower, x = right;
  for (int64_t i = 0; i < s.n; ++i) upper[i * (s.n + 1)] = 1;
  dense<double>().solve_triangular(lower.data(), s.n, false, x.data(), s.columns);
  dense<double>().solve_triangular(upper.data(), s.n, true, x.data(), s.columns);
  Matrix placed(x.size());
  for (int64_t i = 0; i < s.n; ++i)
    std::copy_n(x.begin() + i * s.columns, s.columns, placed.begin() + lu.rows[i] * s.columns);
  write(placed, s.n, s.columns, b);
}

// op(a)ᵀ xᵀ = bᵀ
template <class T>
void solve_triangular(const SolverShape& s, const T* a, T* b) {
  Matrix triangle = read(a, s.n, s.n);
  if (!s.transposes) triangle = adjoint_of(triangle, s.n, s.n);
  Matrix x(b, b + s.columns * s.n);  // column-major: its transpose, row-major
  dense<double>().solve_triangular(triangle.data(), s.n, s.upper == s.transposes, x.data(),
                                   s.columns);
  narrow(x, b);
}

template <class T>
void factor_qr(const SolverShape& s, T* a, T* q) {
  const QrFactors<double> factors(read(a, s.m, s.n), s.m, s.n, s.columns == s.m);
  write(factors.q, s.m, s.columns, q);
  for (int64_t i = 0; i < std::min(s.m, s.n); ++i) {
    for (int64_t j = i; j < s.n; ++j) a[j * s.m + i] = static_cast<T>(factors.r[i * s.n + j]);
  }
}

template <class T>
void compute(const SolverShape& s, const SolverOperands& o) {
  for (int64_t i = 0; i < s.batch; ++i) {
    T* const a =
        static_cast<T*>(o.a) + (s.shares_a ? 0 : i * (s.kind == SolverKind::qr ? s.m : s.n) * s.n);
    T* const b = static_cast<T*>(o.b) + i * (s.kind == SolverKind::qr ? s.m : s.n) * s.columns;
    switch (s.kind) {
      case SolverKind::cholesky:
        factor_cholesky(s, a, o.failures + i);
        break;
      case SolverKind::lu:
        (void)factor_lu(s, a, o.pivots + i * s.n, o.failures + i);
        break;
      case SolverKind::solve:
        solve(s, factor_lu<T>(s, a, nullptr, o.failures + i), b);
        break;
      case SolverKind::solve_triangular:
        solve_triangular(s, a, b);
        break;
      case SolverKind::qr:
        factor_qr(s, a, b);
        break;
    }
  }
}

class HostSolver : public Solver {
 public:
  explicit HostSolver(const SolverShape& shape) : shape_(shape) {}

  // Unused, but there, so that callers are seen to provide it.
  size_t workspace_bytes() const override { return 64; }

  void run(const SolverOperands& operands, void* workspace, Stream& stream) const override {
    check_internal(workspace != nullptr, "a solver was given no workspace");
    if (shape_.kind != SolverKind::solve_triangular) cuda::refuse_recording("cuSOLVER");
    const cudaError_t error = cuda_on_host::enqueue(
        static_cast<cudaStream_t>(stream.native()), [shape = shape_, operands, workspace] {
          std::fill_n(static_cast<unsigned char*>(workspace), 64, 0xff);
          (void)visit_type(Types<float, double>{}, shape.dtype, [&](auto tag) {
            compute<typename decltype(tag)::type>(shape, operands);
            return 0;
          });
        });
    check_internal(error == cudaSuccess, "a solver: ", cudaGetErrorString(error));
  }

 private:
  const SolverShape shape_;
};

}  // namespace

bool has_solver_libraries() { return true; }

std::unique_ptr<Solver> make_solver(Device&, const SolverShape& shape) {
  const bool has_columns = shape.kind != SolverKind::cholesky && shape.kind != SolverKind::lu;
  check_internal(shape.n > 0 && shape.batch > 0 && (shape.kind != SolverKind::qr || shape.m > 0) &&
                     (!has_columns || shape.columns > 0),
                 "a solver without elements: ", shape.m, " x ", shape.n, ", ", shape.columns);
  return std::make_unique<HostSolver>(shape);
}

}  // namespace leat
