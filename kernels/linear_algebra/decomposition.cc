#include "kernels/linear_algebra/decomposition.h"

#include <algorithm>
#include <limits>

namespace leat {
namespace {

template <class W>
bool is_finite(const std::vector<W>& a) {
  return std::all_of(a.begin(), a.end(), [](const W& x) {
    return std::isfinite(std::real(x)) && std::isfinite(std::imag(x));
  });
}

}  // namespace

template <class W>
QrFactors<W>::QrFactors(const std::vector<W>& a, int64_t m, int64_t n, bool full) {
  const int64_t k = full ? m : std::min(m, n);
  q.resize(m * k);
  r.resize(k * n);
  dense<W>().qr(a.data(), m, n, k, q.data(), r.data());
}

template <class W>
SelfAdjointEigen<W>::SelfAdjointEigen(std::vector<W> a, int64_t n, bool wants_vectors)
    : values(n), vectors(wants_vectors ? n * n : 0) {
  for (int64_t i = 0; i < n; ++i) {
    std::fill(a.begin() + i * n + i + 1, a.begin() + (i + 1) * n, W(0));
    a[i * (n + 1)] = std::real(a[i * (n + 1)]);
  }
  const char* const failed =
      "Self-adjoint eigen decomposition was not successful. The input might not be valid";
  check(is_finite(a), failed, ": it is not finite.");
  check(dense<W>().eigen(a.data(), n, values.data(), wants_vectors ? vectors.data() : nullptr),
        failed, ".");
}

template <class W>
SvdFactors<W>::SvdFactors(const std::vector<W>& a, int64_t m, int64_t n, bool full,
                          bool wants_vectors) {
  const int64_t k = std::min(m, n);
  s.resize(k);
  if (wants_vectors) {
    u.resize(m * (full ? m : k));
    v.resize(n * (full ? n : k));
  }
  if (k == 0) {  // of nothing, which Eigen does not take: unit matrices
    for (size_t i = 0; i < u.size(); i += m + 1) u[i] = 1;
    for (size_t i = 0; i < v.size(); i += n + 1) v[i] = 1;
    return;
  }
  W* const to_u = wants_vectors ? u.data() : nullptr;
  W* const to_v = wants_vectors ? v.data() : nullptr;
  if (is_finite(a) && dense<W>().svd(a.data(), m, n, full, s.data(), to_u, to_v)) return;
  const auto nan = std::numeric_limits<RealOf<W>>::quiet_NaN();
  std::fill(s.begin(), s.end(), nan);
  std::fill(u.begin(), u.end(), W(nan));
  std::fill(v.begin(), v.end(), W(nan));
}

template struct QrFactors<float>;
template struct QrFactors<double>;
template struct QrFactors<complex128>;
template struct SelfAdjointEigen<float>;
template struct SelfAdjointEigen<double>;
template struct SelfAdjointEigen<complex128>;
template struct SvdFactors<float>;
template struct SvdFactors<double>;
template struct SvdFactors<complex128>;

}  // namespace leat
