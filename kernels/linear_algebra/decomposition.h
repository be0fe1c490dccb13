// Matrices as products of simpler ones, row-major. W is double or complex128; A' is the adjoint.
#pragma once

#include <cmath>
#include <cstdint>
#include <vector>

#include "core/error.h"
#include "core/step_end.h"
#include "kernels/linear_algebra/wide.h"

namespace leat {

// PA = LU in place, with partial pivoting.
template <class W>
struct Lu {
  std::vector<W> a;
  std::vector<int64_t> rows;  // row i of PA is row rows[i] of A
  int64_t n;
  bool is_odd = false;  // parity of the permutation

  Lu(std::vector<W> matrix, int64_t extent) : a(std::move(matrix)), rows(extent), n(extent) {
    for (int64_t i = 0; i < n; ++i) rows[i] = i;
    for (int64_t j = 0; j < n; ++j) {
      int64_t pivot = j;
      for (int64_t i = j + 1; i < n; ++i) {
        if (std::abs(a[i * n + j]) > std::abs(a[pivot * n + j])) pivot = i;
      }
      if (pivot != j) {
        std::swap_ranges(a.begin() + j * n, a.begin() + (j + 1) * n, a.begin() + pivot * n);
        std::swap(rows[j], rows[pivot]);
        is_odd = !is_odd;
      }
      if (a[j * n + j] == W(0)) continue;
      for (int64_t i = j + 1; i < n; ++i) {
        StepEnd::pace(n - j);
        const W factor = a[i * n + j] /= a[j * n + j];
        for (int64_t k = j + 1; k < n; ++k) a[i * n + k] -= factor * a[j * n + k];
      }
    }
  }

  // NaN passes unless it is the first pivot, as in TensorFlow.
  void check_invertible() const {
    for (int64_t i = 0; i < n; ++i) {
      const double pivot = std::abs(a[i * n + i]);
      check(i == 0 ? pivot > 0 : pivot != 0, "Input is not invertible.");
    }
  }

  // A x = b
  std::vector<W> solve(const std::vector<W>& b, int64_t columns) const {
    std::vector<W> x(b.size());
    for (int64_t i = 0; i < n; ++i) {
      for (int64_t c = 0; c < columns; ++c) {
        StepEnd::pace(i + 1);
        W sum = b[rows[i] * columns + c];
        for (int64_t k = 0; k < i; ++k) sum -= a[i * n + k] * x[k * columns + c];
        x[i * columns + c] = sum;
      }
    }
    for (int64_t i = n - 1; i >= 0; --i) {
      for (int64_t c = 0; c < columns; ++c) {
        StepEnd::pace(n - i);
        W sum = x[i * columns + c];
        for (int64_t k = i + 1; k < n; ++k) sum -= a[i * n + k] * x[k * columns + c];
        x[i * columns + c] = sum / a[i * n + i];
      }
    }
    return x;
  }
};

// A = Q R with A [m, n], Q [m, k] and R [k, n]; k = m if `full`, else min(m, n). By Householder
// reflections (Golub and Van Loan, "Matrix computations", 5.2). Each diagonal element of R is real:
// its sign is opposite to the real part of the element it comes from, or it is that element, if
// that is real with only zeros below it.
template <class W>
struct Qr {
  std::vector<W> q, r;
  Qr(std::vector<W> a, int64_t m, int64_t n, bool full);
};

// The eigenvalues of a self-adjoint matrix in ascending order, and its eigenvectors as columns.
// Reads only the lower triangle, and only the real parts of its diagonal. By Jacobi rotations
// (Golub and Van Loan, 8.5). INVALID_ARGUMENT if the matrix is not finite.
template <class W>
struct SelfAdjointEigen {
  std::vector<double> values;
  std::vector<W> vectors;
  SelfAdjointEigen(const std::vector<W>& a, int64_t n);
};

// A = U diag(s) V' with A [m, n], U [m, k], V [n, k], k = min(m, n), and s descending; with `full`,
// U and V are square. Rotates columns until all are orthogonal (Hestenes, "Inversion of matrices by
// biorthogonalization", 1958). All results are NaN if the matrix is not finite.
template <class W>
struct Svd {
  std::vector<double> s;
  std::vector<W> u, v;
  Svd(const std::vector<W>& a, int64_t m, int64_t n, bool full);
};

// decomposition.cc instantiates both.
extern template struct Qr<double>;
extern template struct Qr<complex128>;
extern template struct SelfAdjointEigen<double>;
extern template struct SelfAdjointEigen<complex128>;
extern template struct Svd<double>;
extern template struct Svd<complex128>;

}  // namespace leat
