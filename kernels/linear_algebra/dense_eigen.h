// The routines of dense.h, compiled for the vector instructions that the including file is compiled
// for. It has defined LEAT_VERSION, our namespace, and Eigen, the namespace of Eigen: templates of
// two versions must not meet in the linker, which would keep either. It includes no other header of
// ours for the same reason.
#include <algorithm>
#include <cmath>
#include <complex>
#include <string_view>

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

template <class W>
bool svd(const W* a, int64_t m, int64_t n, bool full, RealOf<W>* s, W* u, W* v) {
  const bool wants_vectors = u != nullptr;
  const unsigned options = !wants_vectors ? 0U
                           : full         ? Eigen::ComputeFullU | Eigen::ComputeFullV
                                          : Eigen::ComputeThinU | Eigen::ComputeThinV;
  const Eigen::BDCSVD<Matrix<W>> solver(Const<W>(a, m, n), options);
  if (solver.info() != Eigen::Success) return false;
  const int64_t k = std::min(m, n);
  std::copy_n(solver.singularValues().data(), k, s);
  if (!wants_vectors) return true;
  RowMajor<W>(u, m, full ? m : k) = solver.matrixU();
  RowMajor<W>(v, n, full ? n : k) = solver.matrixV();
  return true;
}

template <class W>
constexpr DenseRoutines<W> routines{lu<W>, solve_lu<W>, cholesky<W>, solve_triangular<W>,
                                    qr<W>, eigen<W>,    svd<W>};

constexpr RealDenseRoutines real_routines{routines<float>, routines<double>};

}  // namespace LEAT_VERSION
}  // namespace leat
