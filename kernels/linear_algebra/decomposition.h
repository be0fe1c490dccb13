// Matrices as products of simpler ones, row-major. W is float, double or complex128; A' is the
// adjoint.
#pragma once

#include <cmath>
#include <cstdint>
#include <vector>

#include "core/error.h"
#include "kernels/linear_algebra/dense.h"
#include "kernels/linear_algebra/wide.h"

namespace leat {

// PA = LU in place, with partial pivoting.
template <class W>
struct Lu {
  std::vector<W> a;
  std::vector<int64_t> rows;  // row i of PA is row rows[i] of A
  int64_t n;
  bool is_odd;  // parity of the permutation

  Lu(std::vector<W> matrix, int64_t extent) : a(std::move(matrix)), rows(extent), n(extent) {
    is_odd = dense<W>().lu(a.data(), n, rows.data());
  }

  // NaN passes unless it is the first pivot, as in TensorFlow.
  void check_invertible() const {
    for (int64_t i = 0; i < n; ++i) {
      const RealOf<W> pivot = std::abs(a[i * n + i]);
      check(i == 0 ? pivot > 0 : pivot != 0, "Input is not invertible.");
    }
  }

  // A x = b
  std::vector<W> solve(const std::vector<W>& b, int64_t columns) const {
    std::vector<W> x(b.size());
    for (int64_t i = 0; i < n; ++i)
      std::copy_n(b.begin() + rows[i] * columns, columns, x.begin() + i * columns);
    dense<W>().solve_lu(a.data(), n, x.data(), columns);
    return x;
  }
};

// A = Q R with A [m, n], Q [m, k] and R [k, n]; k = m if `full`, else min(m, n). By Householder
// reflections (Golub and Van Loan, "Matrix computations", 5.2). Each diagonal element of R is real:
// its sign is opposite to the real part of the element it comes from, or it is that element, if
// that is real with only zeros below it.
template <class W>
struct QrFactors {
  std::vector<W> q, r;
  QrFactors(const std::vector<W>& a, int64_t m, int64_t n, bool full);
};

// The eigenvalues of a self-adjoint matrix in ascending order, and its eigenvectors as columns, or
// none. Reads only the lower triangle, and only the real parts of its diagonal. By reduction to
// three diagonals and implicit QR steps (Golub and Van Loan, 8.3). INVALID_ARGUMENT if the matrix
// is not finite.
template <class W>
struct SelfAdjointEigen {
  std::vector<RealOf<W>> values;
  std::vector<W> vectors;
  SelfAdjointEigen(std::vector<W> a, int64_t n, bool wants_vectors);
};

// A = U diag(s) V' with A [m, n], U [m, k], V [n, k], k = min(m, n), and s descending; with `full`,
// U and V are square; they are empty unless wanted. By a bidiagonal matrix (bidiagonal_svd.h). All
// results are NaN if the matrix is not finite.
template <class W>
struct SvdFactors {
  std::vector<RealOf<W>> s;
  std::vector<W> u, v;
  SvdFactors(const std::vector<W>& a, int64_t m, int64_t n, bool full, bool wants_vectors = true);
};

// decomposition.cc instantiates them.
extern template struct QrFactors<float>;
extern template struct QrFactors<double>;
extern template struct QrFactors<complex128>;
extern template struct SelfAdjointEigen<float>;
extern template struct SelfAdjointEigen<double>;
extern template struct SelfAdjointEigen<complex128>;
extern template struct SvdFactors<float>;
extern template struct SvdFactors<double>;
extern template struct SvdFactors<complex128>;

}  // namespace leat
