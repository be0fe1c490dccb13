// The routines of dense.h, compiled for the vector instructions that the including file is compiled
// for. It has defined LEAT_VERSION, our namespace, and Eigen, the namespace of Eigen: templates of
// two versions must not meet in the linker, which would keep either. It includes no other header of
// ours for the same reason.
#include <algorithm>
#include <cmath>
#include <complex>
#include <string_view>

#include "kernels/linear_algebra/bidiagonal_svd.h"
#include "kernels/linear_algebra/dense.h"

// Eigen's checks before it works on a block of a matrix are the places to ask. Those of single
// elements are not: they would take most of the time.
namespace leat::LEAT_VERSION {
constexpr bool is_of_blocks(std::string_view file) {
  return file.ends_with("/Block.h") || file.ends_with("/MapBase.h");
}
[[gnu::tls_model("initial-exec")]] static thread_local int until_question = 0;
inline void pace() {
  if (--until_question >= 0) return;
  until_question = 8;
  ask_for_step_end();
}
}  // namespace leat::LEAT_VERSION
#define eigen_assert(condition)                                                               \
  do {                                                                                        \
    if constexpr (::leat::LEAT_VERSION::is_of_blocks(__FILE__)) ::leat::LEAT_VERSION::pace(); \
  } while (false)
#define EIGEN_NO_DEBUG
#define EIGEN_DONT_PARALLELIZE
#include <Eigen/Cholesky>
#include <Eigen/Eigenvalues>
#include <Eigen/LU>
#include <Eigen/QR>
#include <Eigen/SVD>

namespace leat {
namespace LEAT_VERSION {

template <class W>
using Matrix = Eigen::Matrix<W, Eigen::Dynamic, Eigen::Dynamic>;
template <class W>
using RowMajor = Eigen::Map<Eigen::Matrix<W, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>>;
template <class W>
using Const = Eigen::Map<const Eigen::Matrix<W, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>>;

// Solves for some right-hand sides at a time, so that no step takes long.
template <unsigned mode, class W>
void solve_in_place(const Const<W>& a, RowMajor<W> b) {
  const int64_t most = std::max<int64_t>(16, (int64_t{1} << 30) / (1 + a.rows() * a.rows()));
  for (int64_t c = 0; c < b.cols(); c += most) {
    ask_for_step_end();
    auto part = b.middleCols(c, std::min(most, b.cols() - c));
    a.template triangularView<mode>().solveInPlace(part);
  }
}

template <class W>
bool lu(W* a, int64_t n, int64_t* rows) {
  RowMajor<W> whole(a, n, n);
  Eigen::PartialPivLU<Matrix<W>> lu(whole);
  whole = lu.matrixLU();
  // Row i of A becomes row indices[i] of PA.
  const auto& indices = lu.permutationP().indices();
  for (int64_t i = 0; i < n; ++i) rows[indices[i]] = i;
  return lu.permutationP().determinant() < 0;
}

template <class W>
void solve_lu(const W* lu, int64_t n, W* b, int64_t columns) {
  solve_in_place<Eigen::UnitLower, W>({lu, n, n}, {b, n, columns});
  solve_in_place<Eigen::Upper, W>({lu, n, n}, {b, n, columns});
}

template <class W>
bool cholesky(W* a, int64_t n) {
  RowMajor<W> whole(a, n, n);
  Matrix<W> l = whole;
  if (Eigen::internal::llt_inplace<W, Eigen::Lower>::blocked(l) >= 0) return false;
  for (int64_t i = 0; i < n; ++i)
    if (!(std::real(l(i, i)) > 0)) return false;  // NaN
  whole.template triangularView<Eigen::Lower>() = l;
  return true;
}

template <class W>
void solve_triangular(const W* a, int64_t n, bool upper, W* b, int64_t columns) {
  if (upper) {
    solve_in_place<Eigen::Upper, W>({a, n, n}, {b, n, columns});
  } else {
    solve_in_place<Eigen::Lower, W>({a, n, n}, {b, n, columns});
  }
}

template <class W>
void qr(const W* a, int64_t m, int64_t n, int64_t k, W* q, W* r) {
  const Eigen::HouseholderQR<Matrix<W>> factors(Const<W>(a, m, n));
  RowMajor<W> r_out(r, k, n);
  r_out.setZero();
  r_out.template triangularView<Eigen::Upper>() = factors.matrixQR().topRows(k);
  Matrix<W> unit = Matrix<W>::Identity(m, k);
  unit.applyOnTheLeft(factors.householderQ());
  RowMajor<W>(q, m, k) = unit;
}

template <class W>
bool eigen(const W* a, int64_t n, RealOf<W>* values, W* vectors) {
  const Eigen::SelfAdjointEigenSolver<Matrix<W>> solver(
      Const<W>(a, n, n), vectors == nullptr ? Eigen::EigenvaluesOnly : Eigen::ComputeEigenvectors);
  if (solver.info() != Eigen::Success) return false;
  std::copy_n(solver.eigenvalues().data(), n, values);
  if (vectors != nullptr) RowMajor<W>(vectors, n, n) = solver.eigenvectors();
  return true;
}

// A = U diag(s) V', m >= n, by a bidiagonal matrix. u [m, width] and v [n, n], or null.
template <class W>
bool svd_of_tall(Matrix<W> a, int64_t width, RealOf<W>* s, Matrix<W>* u, Matrix<W>* v) {
  using R = RealOf<W>;
  const int64_t n = a.cols();
  const R scale = a.cwiseAbs().maxCoeff();
  if (scale != 0) a /= scale;
  Eigen::internal::UpperBidiagonalization<Matrix<W>> bidiagonal(a);
  // Eigen stores what is above the diagonal as one row, from its second column on.
  const auto& rows = bidiagonal.bidiagonal().coeffs();
  std::vector<double> d(n), e(n - 1);
  for (int64_t i = 0; i < n; ++i) d[i] = static_cast<double>(rows(1, i));
  for (int64_t i = 0; i + 1 < n; ++i) e[i] = static_cast<double>(rows(0, i + 1));
  Matrix<R> q, p;
  if (u != nullptr) p = q = Matrix<R>::Identity(n, n);
  if (!BidiagonalSvd<R>(d, e, u == nullptr ? nullptr : q.data(), u == nullptr ? nullptr : p.data())
           .run())
    return false;
  for (int64_t i = 0; i < n; ++i) s[i] = static_cast<R>(d[i]) * scale;
  if (u == nullptr) return true;
  *u = Matrix<W>::Identity(a.rows(), width);
  u->topLeftCorner(n, n) = q.template cast<W>();
  u->applyOnTheLeft(bidiagonal.householderU());
  *v = p.template cast<W>();
  v->applyOnTheLeft(bidiagonal.householderV());
  return true;
}

template <class W>
bool svd(const W* a, int64_t m, int64_t n, bool full, RealOf<W>* s, W* u, W* v) {
  const int64_t k = std::min(m, n), columns_u = full ? m : k, columns_v = full ? n : k;
  Matrix<W> of_u, of_v;
  Matrix<W>*const to_u = u == nullptr ? nullptr : &of_u, *const to_v =
                                                             u == nullptr ? nullptr : &of_v;
  const Const<W> whole(a, m, n);
  const bool is_done = m >= n ? svd_of_tall<W>(whole, columns_u, s, to_u, to_v)
                              : svd_of_tall<W>(whole.adjoint(), columns_v, s, to_v, to_u);
  if (!is_done || u == nullptr) return is_done;
  RowMajor<W>(u, m, columns_u) = of_u;
  RowMajor<W>(v, n, columns_v) = of_v;
  return true;
}

template <class W>
constexpr DenseRoutines<W> routines{lu<W>, solve_lu<W>, cholesky<W>, solve_triangular<W>,
                                    qr<W>, eigen<W>,    svd<W>};

constexpr RealDenseRoutines real_routines{routines<float>, routines<double>};

}  // namespace LEAT_VERSION
}  // namespace leat
