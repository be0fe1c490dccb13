#include "kernels/linear_algebra/decomposition.h"

#include <algorithm>
#include <limits>
#include <numeric>

#include "core/step_end.h"

namespace leat {
namespace {

constexpr double epsilon = std::numeric_limits<double>::epsilon();
constexpr int sweeps = 60;  // of rotations; about ten are enough

template <class W>
bool is_finite(const std::vector<W>& a) {
  return std::all_of(a.begin(), a.end(), [](const W& x) {
    return std::isfinite(std::real(x)) && std::isfinite(std::imag(x));
  });
}

template <class W>
double norm_of(const std::vector<W>& a) {
  double squares = 0;
  for (const W& x : a) squares += std::norm(x);
  return std::sqrt(squares);
}

// Divides the entries, which are finite, by the power of 2 below the largest of them, and returns
// that power: then their squares do not overflow, and are 0 only where they do not matter.
template <class W>
double scale_down(std::vector<W>& a) {
  double largest = 0;
  for (const W& x : a)
    largest = std::max({largest, std::abs(std::real(x)), std::abs(std::imag(x))});
  if (largest == 0) return 1;
  const double unit = std::ldexp(1.0, std::ilogb(largest));
  for (W& x : a) x /= unit;
  return unit;
}

// The rotation that makes two vectors x and y of squared norms a and b and product c = x'y
// orthogonal. For complex vectors, y is first turned, by no more than a right angle, so that c is
// real: complex128 with real values gives the results of double.
template <class W>
struct Rotation {
  double cosine, sine;
  W turn{1};

  Rotation(double a, double b, const W& c) {
    double real = std::real(c);
    if constexpr (is_complex_type<W>) {
      real = std::copysign(std::abs(c), real);
      turn = std::conj(c) / real;
    }
    const double zeta = (b - a) / (2 * real);
    const double t = std::copysign(1 / (std::abs(zeta) + std::sqrt(1 + zeta * zeta)), zeta);
    cosine = 1 / std::sqrt(1 + t * t);
    sine = cosine * t;
  }
  // Rotates columns; of_rows rotates rows, with the conjugate turn.
  void operator()(W& x, W& y) const { rotate(x, y, turn); }
  void of_rows(W& x, W& y) const { rotate(x, y, conjugate(turn)); }

 private:
  void rotate(W& x, W& y, const W& turned) const {
    const W before = x, other = y * turned;
    x = cosine * before - sine * other;
    y = sine * before + cosine * other;
  }
};

// Columns `first` and on of a [rows, columns] become unit vectors orthogonal to all before them.
template <class W>
void complete_basis(std::vector<W>& a, int64_t rows, int64_t columns, int64_t first) {
  for (int64_t column = first, unit = 0; column < columns && unit < rows; ++unit) {
    std::vector<W> x(rows);
    x[unit] = 1;
    for (int pass = 0; pass < 2; ++pass) {  // twice is enough
      for (int64_t j = 0; j < column; ++j) {
        StepEnd::pace(2 * rows);
        W product = 0;
        for (int64_t i = 0; i < rows; ++i) product += conjugate(a[i * columns + j]) * x[i];
        for (int64_t i = 0; i < rows; ++i) x[i] -= product * a[i * columns + j];
      }
    }
    const double norm = norm_of(x);
    if (norm < 0.5 / std::sqrt(static_cast<double>(rows))) continue;
    for (int64_t i = 0; i < rows; ++i) a[i * columns + column] = x[i] / norm;
    ++column;
  }
}

}  // namespace

template <class W>
Qr<W>::Qr(std::vector<W> a, int64_t m, int64_t n, bool full) {
  const int64_t least = std::min(m, n), k = full ? m : least;
  // The reflections I - tau v v', whose adjoints make up Q; v is 1 at j, and below that it replaces
  // the elements of A that are now 0.
  std::vector<W> taus(least);
  std::vector<W> below(m * least);  // [m, least]
  for (int64_t j = 0; j < least; ++j) {
    double tail = 0;
    for (int64_t i = j + 1; i < m; ++i) tail += std::norm(a[i * n + j]);
    const W head = a[j * n + j];
    constexpr double nothing = std::numeric_limits<double>::min();
    if (tail <= nothing && std::imag(head) * std::imag(head) <= nothing) continue;
    const double norm = std::sqrt(std::norm(head) + tail);
    const double diagonal = std::real(head) >= 0 ? -norm : norm;
    taus[j] = conjugate((diagonal - head) / diagonal);
    below[j * least + j] = 1;
    for (int64_t i = j + 1; i < m; ++i) below[i * least + j] = a[i * n + j] / (head - diagonal);
    for (int64_t c = j; c < n; ++c) {
      StepEnd::pace(2 * (m - j));
      W product = 0;
      for (int64_t i = j; i < m; ++i) product += conjugate(below[i * least + j]) * a[i * n + c];
      for (int64_t i = j; i < m; ++i) a[i * n + c] -= taus[j] * product * below[i * least + j];
    }
  }
  r.assign(k * n, W(0));
  for (int64_t i = 0; i < least; ++i)
    std::copy(&a[i * n + i], a.data() + (i + 1) * n, &r[i * n + i]);
  q.assign(m * k, W(0));
  for (int64_t i = 0; i < k; ++i) q[i * k + i] = 1;
  for (int64_t j = least; j-- > 0;) {
    for (int64_t c = 0; c < k; ++c) {
      StepEnd::pace(2 * (m - j));
      W product = 0;
      for (int64_t i = j; i < m; ++i) product += conjugate(below[i * least + j]) * q[i * k + c];
      const W factor = conjugate(taus[j]) * product;
      for (int64_t i = j; i < m; ++i) q[i * k + c] -= factor * below[i * least + j];
    }
  }
}

template <class W>
SelfAdjointEigen<W>::SelfAdjointEigen(const std::vector<W>& a, int64_t n)
    : values(n), vectors(n * n) {
  std::vector<W> s(n * n);
  for (int64_t i = 0; i < n; ++i) {
    for (int64_t j = 0; j < i; ++j) {
      s[i * n + j] = a[i * n + j];
      s[j * n + i] = conjugate(a[i * n + j]);
    }
    s[i * n + i] = std::real(a[i * n + i]);
  }
  check(is_finite(s),
        "Self-adjoint eigen decomposition was not successful. The input might not be valid: it is "
        "not finite.");
  const double unit = scale_down(s);
  std::vector<W> v(n * n);
  for (int64_t i = 0; i < n; ++i) v[i * n + i] = 1;
  const auto diagonal = [&](int64_t i) { return std::real(s[i * n + i]); };
  const double scale = norm_of(s);
  bool is_done = false;
  for (int sweep = 0; sweep < sweeps && !is_done; ++sweep) {
    is_done = true;
    for (int64_t p = 0; p < n; ++p) {
      for (int64_t q = p + 1; q < n; ++q) {
        if (std::abs(s[p * n + q]) <= epsilon * epsilon * scale) continue;
        StepEnd::pace(3 * n);
        is_done = is_done && std::abs(s[p * n + q]) <= epsilon * scale * 1e-2;
        const Rotation<W> rotate(diagonal(p), diagonal(q), s[p * n + q]);
        for (int64_t i = 0; i < n; ++i) rotate(s[i * n + p], s[i * n + q]);
        for (int64_t i = 0; i < n; ++i) rotate.of_rows(s[p * n + i], s[q * n + i]);
        for (int64_t i = 0; i < n; ++i) rotate(v[i * n + p], v[i * n + q]);
      }
    }
  }
  std::vector<int64_t> order(n);
  std::iota(order.begin(), order.end(), int64_t{0});
  std::sort(order.begin(), order.end(),
            [&](int64_t i, int64_t j) { return diagonal(i) < diagonal(j); });
  for (int64_t j = 0; j < n; ++j) {
    values[j] = unit * diagonal(order[j]);
    for (int64_t i = 0; i < n; ++i) vectors[i * n + j] = v[i * n + order[j]];
  }
}

template <class W>
Svd<W>::Svd(const std::vector<W>& a, int64_t m, int64_t n, bool full) {
  if (m < n) {
    Svd other(adjoint_of(a, m, n), n, m, full);
    s = std::move(other.s);
    u = std::move(other.v);
    v = std::move(other.u);
    return;
  }
  const int64_t width = full ? m : n;  // of u
  if (!is_finite(a)) {
    const double nan = std::numeric_limits<double>::quiet_NaN();
    s.assign(n, nan);
    u.assign(m * width, W(nan));
    v.assign(n * n, W(nan));
    return;
  }
  std::vector<W> columns = a, turned(n * n);
  const double unit = scale_down(columns);
  for (int64_t i = 0; i < n; ++i) turned[i * n + i] = 1;
  const auto product = [&](int64_t p, int64_t q) {
    W sum = 0;
    for (int64_t i = 0; i < m; ++i) sum += conjugate(columns[i * n + p]) * columns[i * n + q];
    return sum;
  };
  bool is_done = false;
  for (int sweep = 0; sweep < sweeps && !is_done; ++sweep) {
    is_done = true;
    for (int64_t p = 0; p < n; ++p) {
      for (int64_t q = p + 1; q < n; ++q) {
        StepEnd::pace(5 * m);
        const double pp = std::real(product(p, p)), qq = std::real(product(q, q));
        const W pq = product(p, q);
        if (std::abs(pq) <= epsilon * std::sqrt(pp * qq) || pq == W(0)) continue;
        is_done = false;
        const Rotation<W> rotate(pp, qq, pq);
        for (int64_t i = 0; i < m; ++i) rotate(columns[i * n + p], columns[i * n + q]);
        for (int64_t i = 0; i < n; ++i) rotate(turned[i * n + p], turned[i * n + q]);
      }
    }
  }
  std::vector<double> norms(n);
  for (int64_t j = 0; j < n; ++j) norms[j] = std::sqrt(std::real(product(j, j)));
  std::vector<int64_t> order(n);
  std::iota(order.begin(), order.end(), int64_t{0});
  std::sort(order.begin(), order.end(), [&](int64_t i, int64_t j) { return norms[i] > norms[j]; });
  s.resize(n);
  u.assign(m * width, W(0));
  v.resize(n * n);
  int64_t rank = 0;
  for (int64_t j = 0; j < n; ++j) {
    const int64_t from = order[j];
    s[j] = unit * norms[from];
    for (int64_t i = 0; i < n; ++i) v[i * n + j] = turned[i * n + from];
    if (norms[from] <= norms[order[0]] * epsilon * static_cast<double>(m))
      continue;  // its direction is noise
    for (int64_t i = 0; i < m; ++i) u[i * width + j] = columns[i * n + from] / norms[from];
    rank = j + 1;
  }
  complete_basis(u, m, width, rank);
}

template struct Qr<double>;
template struct Qr<complex128>;
template struct SelfAdjointEigen<double>;
template struct SelfAdjointEigen<complex128>;
template struct Svd<double>;
template struct Svd<complex128>;

}  // namespace leat
