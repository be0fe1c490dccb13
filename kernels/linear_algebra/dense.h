// Routines on dense matrices, from Eigen (https://eigen.tuxfamily.org, MPL 2). Matrices are
// row-major and without gaps, in double precision. All routines ask now and then whether their step
// has ended.
#pragma once

#include <complex>
#include <cstdint>

namespace leat {

// W is double or std::complex<double>; A' is the adjoint.
template <class W>
struct DenseRoutines {
  // PA = LU in place, a [n, n], with partial pivoting: row i of PA is row rows[i] of A. Returns
  // whether the permutation is odd.
  bool (*lu)(W* a, int64_t n, int64_t* rows);
  // b [n, columns] = the x with LU x = b, for what lu() made.
  void (*solve_lu)(const W* lu, int64_t n, W* b, int64_t columns);
  // The lower triangle of a [n, n] = the L with L L' = A, of which that triangle is read. False if
  // A is not positive definite.
  bool (*cholesky)(W* a, int64_t n);
  // b [n, columns] = the x with T x = b; T is the upper or lower triangle of a [n, n].
  void (*solve_triangular)(const W* a, int64_t n, bool upper, W* b, int64_t columns);
  // A = QR by Householder reflections: a [m, n], q [m, k], r [k, n], k from min(m, n) to m.
  void (*qr)(const W* a, int64_t m, int64_t n, int64_t k, W* q, W* r);
  // The eigenvalues [n] of a self-adjoint a [n, n] in rising order, of which the lower triangle is
  // read, and, unless `vectors` is null, its eigenvectors as columns [n, n]. False if it did not
  // converge.
  bool (*eigen)(const W* a, int64_t n, double* values, W* vectors);
  // A = U diag(s) V', a [m, n], s [k] in falling order, k = min(m, n); unless they are null, u [m,
  // k] and v [n, k], or square if `full`. False if it did not converge.
  bool (*svd)(const W* a, int64_t m, int64_t n, bool full, double* s, W* u, W* v);
};

// For the vector instructions of this processor.
template <class W>
const DenseRoutines<W>& dense();
template <>
const DenseRoutines<double>& dense();
template <>
const DenseRoutines<std::complex<double>>& dense();

// The versions; null if the compiler does not make them.
extern const DenseRoutines<double> dense_base;
extern const DenseRoutines<std::complex<double>> dense_base_complex;
extern const DenseRoutines<double>*const dense_avx2, *const dense_avx512;

void ask_for_step_end();  // StepEnd::ask(), for files that must not include it

}  // namespace leat
