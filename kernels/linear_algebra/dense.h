// Routines on dense matrices, from Eigen (https://eigen.tuxfamily.org, MPL 2). Matrices are
// row-major and without gaps. All routines compute in the type of their elements, and ask now and
// then whether their step has ended.
#pragma once

#include <complex>
#include <cstdint>

namespace leat {

// The type of a number's real part.
template <class W>
using RealOf = decltype(std::real(W()));

// W is float, double or complex128; A' is the adjoint.
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
  bool (*eigen)(const W* a, int64_t n, RealOf<W>* values, W* vectors);
  // A = U diag(s) V', a [m, n], s [k] in falling order, k = min(m, n); unless they are null, u [m,
  // k] and v [n, k], or square if `full`. False if it did not converge.
  bool (*svd)(const W* a, int64_t m, int64_t n, bool full, RealOf<W>* s, W* u, W* v);
};

// For the vector instructions of this processor.
template <class W>
const DenseRoutines<W>& dense();
template <>
const DenseRoutines<float>& dense();
template <>
const DenseRoutines<double>& dense();
template <>
const DenseRoutines<std::complex<double>>& dense();

// The versions for some vector instructions; null if the compiler does not make it. There is none
// for AVX-512: Eigen 3.4 is slower with it (300 rows of f32, AMD Zen 4: triangular 365 µs for 301,
// inverse 2.1 ms for 1.7; f64: QR 3.5 ms for 3.3; an SVD of 200 rows alone 5.3 ms for 5.5).
struct RealDenseRoutines {
  DenseRoutines<float> f32;
  DenseRoutines<double> f64;
};
extern const RealDenseRoutines dense_base;
extern const DenseRoutines<std::complex<double>> dense_base_complex;
extern const RealDenseRoutines* const dense_avx2;

void ask_for_step_end();  // StepEnd::ask(), for files that must not include it

}  // namespace leat
