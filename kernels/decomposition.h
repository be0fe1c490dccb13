// Matrices as products of simpler ones, in double precision, row-major.
#pragma once

#include <cmath>
#include <cstdint>
#include <vector>

#include "core/error.h"

namespace leat {

template <class T>
std::vector<double> widened(const T* from, int64_t n) {
  return std::vector<double>(from, from + n);
}

// PA = LU in place, with partial pivoting.
struct Lu {
  std::vector<double> a;
  std::vector<int64_t> rows;  // row i of PA is row rows[i] of A
  int64_t n;
  bool is_odd = false;  // the permutation

  Lu(std::vector<double> matrix, int64_t extent) : a(std::move(matrix)), rows(extent), n(extent) {
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
      if (a[j * n + j] == 0) continue;
      for (int64_t i = j + 1; i < n; ++i) {
        const double factor = a[i * n + j] /= a[j * n + j];
        for (int64_t k = j + 1; k < n; ++k) a[i * n + k] -= factor * a[j * n + k];
      }
    }
  }

  // Where NaN is not the first pivot, it passes, as in TensorFlow.
  void check_invertible() const {
    for (int64_t i = 0; i < n; ++i) {
      const double pivot = std::abs(a[i * n + i]);
      check(i == 0 ? pivot > 0 : pivot != 0, "Input is not invertible.");
    }
  }

  // A x = b
  std::vector<double> solve(const std::vector<double>& b, int64_t columns) const {
    std::vector<double> x(b.size());
    for (int64_t i = 0; i < n; ++i) {
      for (int64_t c = 0; c < columns; ++c) {
        double sum = b[rows[i] * columns + c];
        for (int64_t k = 0; k < i; ++k) sum -= a[i * n + k] * x[k * columns + c];
        x[i * columns + c] = sum;
      }
    }
    for (int64_t i = n - 1; i >= 0; --i) {
      for (int64_t c = 0; c < columns; ++c) {
        double sum = x[i * columns + c];
        for (int64_t k = i + 1; k < n; ++k) sum -= a[i * n + k] * x[k * columns + c];
        x[i * columns + c] = sum / a[i * n + i];
      }
    }
    return x;
  }
};

// A = Q R with A [m, n], Q [m, k] and R [k, n]; k = m if it is `full`, else min(m, n). By
// Householder's reflections (Golub and Van Loan, "Matrix computations", 5.2); each diagonal element
// of R has the other sign than the element it comes from, or is that if there is nothing below it.
struct Qr {
  std::vector<double> q, r;
  Qr(std::vector<double> a, int64_t m, int64_t n, bool full);
};

// The eigenvalues of a symmetric matrix in rising order, and its eigenvectors as columns; only the
// lower triangle is read. By Jacobi's rotations (Golub and Van Loan, 8.5). INVALID_ARGUMENT if the
// matrix is not finite.
struct SymmetricEigen {
  std::vector<double> values, vectors;
  SymmetricEigen(const std::vector<double>& a, int64_t n);
};

// A = U diag(s) V' with A [m, n], U [m, k], V [n, k], k = min(m, n), and s falling; with `full`, U
// and V are square. By rotations of columns until all are orthogonal (Hestenes, "Inversion of
// matrices by biorthogonalization", 1958). All are NaN if the matrix is not finite.
struct Svd {
  std::vector<double> s, u, v;
  Svd(const std::vector<double>& a, int64_t m, int64_t n, bool full);
};

}  // namespace leat
