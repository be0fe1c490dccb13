#include "kernels/decomposition.h"

#include <algorithm>
#include <limits>
#include <numeric>

namespace leat {
namespace {

constexpr double epsilon = std::numeric_limits<double>::epsilon();
constexpr int sweeps = 60;  // of rotations; some ten are enough

bool is_finite(const std::vector<double>& a) {
  return std::all_of(a.begin(), a.end(), [](double x) { return std::isfinite(x); });
}

// Divides the entries, which are finite, by the power of 2 below the largest of them, and returns
// it: their squares do not overflow then, and are 0 only where they do not count.
double scale_down(std::vector<double>& a) {
  double largest = 0;
  for (const double x : a) largest = std::max(largest, std::abs(x));
  if (largest == 0) return 1;
  const double unit = std::ldexp(1.0, std::ilogb(largest));
  for (double& x : a) x /= unit;
  return unit;
}

// The rotation that makes two vectors of squared norms a and b and product c orthogonal.
struct Rotation {
  double cosine, sine;

  Rotation(double a, double b, double c) {
    const double zeta = (b - a) / (2 * c);
    const double t = std::copysign(1 / (std::abs(zeta) + std::sqrt(1 + zeta * zeta)), zeta);
    cosine = 1 / std::sqrt(1 + t * t);
    sine = cosine * t;
  }
  void operator()(double& x, double& y) const {
    const double before = x;
    x = cosine * before - sine * y;
    y = sine * before + cosine * y;
  }
};

// Columns `first` and on of a [rows, columns] become unit vectors orthogonal to all before them.
void complete_basis(std::vector<double>& a, int64_t rows, int64_t columns, int64_t first) {
  for (int64_t column = first, unit = 0; column < columns && unit < rows; ++unit) {
    std::vector<double> x(rows, 0.0);
    x[unit] = 1;
    for (int pass = 0; pass < 2; ++pass) {  // twice is enough
      for (int64_t j = 0; j < column; ++j) {
        double product = 0;
        for (int64_t i = 0; i < rows; ++i) product += x[i] * a[i * columns + j];
        for (int64_t i = 0; i < rows; ++i) x[i] -= product * a[i * columns + j];
      }
    }
    const double norm = std::sqrt(std::inner_product(x.begin(), x.end(), x.begin(), 0.0));
    if (norm < 0.5 / std::sqrt(static_cast<double>(rows))) continue;
    for (int64_t i = 0; i < rows; ++i) a[i * columns + column] = x[i] / norm;
    ++column;
  }
}

}  // namespace

Qr::Qr(std::vector<double> a, int64_t m, int64_t n, bool full) {
  const int64_t least = std::min(m, n), k = full ? m : least;
  // The reflections I - tau v v'; v is 1 at j, and below that where A had what is now 0.
  std::vector<double> taus(least);
  std::vector<double> below(m * least);  // [m, least]
  for (int64_t j = 0; j < least; ++j) {
    double tail = 0;
    for (int64_t i = j + 1; i < m; ++i) tail += a[i * n + j] * a[i * n + j];
    if (tail <= std::numeric_limits<double>::min()) continue;
    const double head = a[j * n + j], norm = std::sqrt(head * head + tail);
    const double diagonal = head >= 0 ? -norm : norm;
    taus[j] = (diagonal - head) / diagonal;
    below[j * least + j] = 1;
    for (int64_t i = j + 1; i < m; ++i) below[i * least + j] = a[i * n + j] / (head - diagonal);
    for (int64_t c = j; c < n; ++c) {
      double product = 0;
      for (int64_t i = j; i < m; ++i) product += below[i * least + j] * a[i * n + c];
      for (int64_t i = j; i < m; ++i) a[i * n + c] -= taus[j] * product * below[i * least + j];
    }
  }
  r.assign(k * n, 0.0);
  for (int64_t i = 0; i < least; ++i)
    std::copy(&a[i * n + i], a.data() + (i + 1) * n, &r[i * n + i]);
  q.assign(m * k, 0.0);
  for (int64_t i = 0; i < k; ++i) q[i * k + i] = 1;
  for (int64_t j = least; j-- > 0;) {
    for (int64_t c = 0; c < k; ++c) {
      double product = 0;
      for (int64_t i = j; i < m; ++i) product += below[i * least + j] * q[i * k + c];
      for (int64_t i = j; i < m; ++i) q[i * k + c] -= taus[j] * product * below[i * least + j];
    }
  }
}

SymmetricEigen::SymmetricEigen(const std::vector<double>& a, int64_t n)
    : values(n), vectors(n * n, 0.0) {
  std::vector<double> s(n * n);
  for (int64_t i = 0; i < n; ++i) {
    for (int64_t j = 0; j <= i; ++j) s[i * n + j] = s[j * n + i] = a[i * n + j];
  }
  check(is_finite(s),
        "Self-adjoint eigen decomposition was not successful. The input might not be valid: it is "
        "not finite.");
  const double unit = scale_down(s);
  std::vector<double> v(n * n, 0.0);
  for (int64_t i = 0; i < n; ++i) v[i * n + i] = 1;
  const double scale = std::sqrt(std::inner_product(s.begin(), s.end(), s.begin(), 0.0));
  bool is_done = false;
  for (int sweep = 0; sweep < sweeps && !is_done; ++sweep) {
    is_done = true;
    for (int64_t p = 0; p < n; ++p) {
      for (int64_t q = p + 1; q < n; ++q) {
        if (std::abs(s[p * n + q]) <= epsilon * epsilon * scale) continue;
        is_done = is_done && std::abs(s[p * n + q]) <= epsilon * scale * 1e-2;
        const Rotation rotate(s[p * n + p], s[q * n + q], s[p * n + q]);
        for (int64_t i = 0; i < n; ++i) rotate(s[i * n + p], s[i * n + q]);
        for (int64_t i = 0; i < n; ++i) rotate(s[p * n + i], s[q * n + i]);
        for (int64_t i = 0; i < n; ++i) rotate(v[i * n + p], v[i * n + q]);
      }
    }
  }
  std::vector<int64_t> order(n);
  std::iota(order.begin(), order.end(), int64_t{0});
  std::sort(order.begin(), order.end(),
            [&](int64_t i, int64_t j) { return s[i * n + i] < s[j * n + j]; });
  for (int64_t j = 0; j < n; ++j) {
    values[j] = unit * s[order[j] * n + order[j]];
    for (int64_t i = 0; i < n; ++i) vectors[i * n + j] = v[i * n + order[j]];
  }
}

Svd::Svd(const std::vector<double>& a, int64_t m, int64_t n, bool full) {
  if (m < n) {  // of the transpose
    std::vector<double> transposed(a.size());
    for (int64_t i = 0; i < m; ++i) {
      for (int64_t j = 0; j < n; ++j) transposed[j * m + i] = a[i * n + j];
    }
    Svd other(transposed, n, m, full);
    s = std::move(other.s);
    u = std::move(other.v);
    v = std::move(other.u);
    return;
  }
  const int64_t width = full ? m : n;  // of u
  if (!is_finite(a)) {
    const double nan = std::numeric_limits<double>::quiet_NaN();
    s.assign(n, nan);
    u.assign(m * width, nan);
    v.assign(n * n, nan);
    return;
  }
  std::vector<double> columns = a, turned(n * n, 0.0);
  const double unit = scale_down(columns);
  for (int64_t i = 0; i < n; ++i) turned[i * n + i] = 1;
  const auto product = [&](int64_t p, int64_t q) {
    double sum = 0;
    for (int64_t i = 0; i < m; ++i) sum += columns[i * n + p] * columns[i * n + q];
    return sum;
  };
  bool is_done = false;
  for (int sweep = 0; sweep < sweeps && !is_done; ++sweep) {
    is_done = true;
    for (int64_t p = 0; p < n; ++p) {
      for (int64_t q = p + 1; q < n; ++q) {
        const double pp = product(p, p), qq = product(q, q), pq = product(p, q);
        if (std::abs(pq) <= epsilon * std::sqrt(pp * qq) || pq == 0) continue;
        is_done = false;
        const Rotation rotate(pp, qq, pq);
        for (int64_t i = 0; i < m; ++i) rotate(columns[i * n + p], columns[i * n + q]);
        for (int64_t i = 0; i < n; ++i) rotate(turned[i * n + p], turned[i * n + q]);
      }
    }
  }
  std::vector<double> norms(n);
  for (int64_t j = 0; j < n; ++j) norms[j] = std::sqrt(product(j, j));
  std::vector<int64_t> order(n);
  std::iota(order.begin(), order.end(), int64_t{0});
  std::sort(order.begin(), order.end(), [&](int64_t i, int64_t j) { return norms[i] > norms[j]; });
  s.resize(n);
  u.assign(m * width, 0.0);
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

}  // namespace leat
