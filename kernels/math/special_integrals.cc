// leat: cpu+cuda
// Functions defined by integrals, in double precision: Dawsn, Expint, FresnelCos, FresnelSin and
// Spence. The formulas are those of the NIST Digital Library of Mathematical Functions (DLMF).
#include "kernels/elementwise_ops.h"

namespace leat {
namespace {

constexpr double infinity = std::numeric_limits<double>::infinity();
constexpr double pi = 3.14159265358979323846;

// e^(-x²) times the power series of the integral of e^(t²), whose terms are all positive (DLMF
// 7.6.1); for large x the expansion in 1 / x² (7.12.1). x >= 0.
LEAT_DEVICE double dawson(double x) {
  const double square = x * x;
  if (x < 6.5) {
    double power = x, sum = x;
    for (int k = 1; power > 1e-17 * sum; ++k) {
      power *= square / k;
      sum += power / (2 * k + 1);
    }
    return std::exp(-square) * sum;
  }
  double term = 1, sum = 1;
  for (int k = 1; k < 42 && term > 1e-17; ++k) {
    term *= (2 * k - 1) / (2 * square);
    sum += term;
  }
  return sum / 2 / x;
}

// Ei(x), x >= 0: DLMF 6.6.1, for large x 6.12.2.
LEAT_DEVICE double exponential_integral(double x) {
  constexpr double euler = 0.57721566490153286061;
  if (x == 0) return -infinity;
  if (x < 40) {
    double power = 1, sum = 0;
    for (int k = 1; k < 200; ++k) {
      power *= x / k;
      const double term = power / k;
      sum += term;
      if (term <= 1e-17 * sum) break;
    }
    return euler + std::log(x) + sum;
  }
  if (x == infinity) return infinity;
  double term = 1, sum = 1;
  for (int k = 1; k < 40 && term > 1e-17; ++k) {
    term *= k / x;
    sum += term;
  }
  const double root = std::exp(x / 2);  // e^x alone may be too large
  return root * (sum / x) * root;
}

// The Fresnel integrals C and S of x >= 0: DLMF 7.6.4 and 7.6.6; for large x, C + i S =
// (1 + i) / 2 - x e^(iπx²/2) / f with the even part of the continued fraction 7.9.2,
// f = b(0) - 1 2 / (b(1) - 3 4 / (b(2) - …)), b(k) = 4 k + 1 - i π x².
LEAT_DEVICE double fresnel(double x, bool sine) {
  if (x < 1.6) {
    const double square = pi / 2 * x * x;
    double term = sine ? x * square : x, sum = 0;
    for (int k = sine ? 1 : 0;; k += 2) {
      const double next = term / (2 * k + 1);
      sum += next;
      if (std::abs(next) <= 1e-17 * std::abs(sum)) return sum;
      term *= -square * square / ((k + 1.0) * (k + 2.0));
    }
  }
  if (x > 1e9) return 0.5;
  const double imaginary = -pi * x * x;
  const int depth = 12 + static_cast<int>(200 / (x * x));
  double re = 4 * depth + 1, im = imaginary;
  for (int k = depth - 1; k >= 0; --k) {
    const double scale = (2 * k + 1.0) * (2 * k + 2.0) / (re * re + im * im);
    re = 4 * k + 1 - scale * re;
    im = imaginary + scale * im;
  }
  const double angle = pi / 2 * std::fmod(x * x, 4.0), scale = x / (re * re + im * im);
  const double c = std::cos(angle), s = std::sin(angle);
  return 0.5 - scale * (sine ? s * re - c * im : c * re + s * im);
}

// Spence's function, Li_2(1 - x), for x in [1/2, 2]: in powers of u = -log x its coefficients are
// Bernoulli's numbers over (n + 1)!.
LEAT_DEVICE double spence_near_1(double x) {
  const double u = -std::log(x), v = u * u;
  double sum = 4.5189800296199182e-16;
  sum = sum * v - 1.9939295860721076e-14;
  sum = sum * v + 8.9216910204564526e-13;
  sum = sum * v - 4.0647616451442255e-11;
  sum = sum * v + 1.0 / 526901760;
  sum = sum * v - 1.0 / 10886400;
  sum = sum * v + 1.0 / 211680;
  sum = sum * v - 1.0 / 3600;
  sum = sum * v + 1.0 / 36;
  return u - v / 4 + u * v * sum;
}

// x >= 0. DLMF 25.12.6: the sum over x and 1 - x; 25.12.4: that over x and 1 / x.
LEAT_DEVICE double spence(double x) {
  if (x == infinity) return -infinity;
  const double inner = x > 2 ? 1 / x : x;
  double y = inner == 0 ? pi * pi / 6
             : inner < 0.5
                 ? pi * pi / 6 - std::log(inner) * std::log1p(-inner) - spence_near_1(1 - inner)
                 : spence_near_1(inner);
  if (x > 2) y = -y - std::log(x) * std::log(x) / 2;
  return y;
}

struct Dawsn {
  static constexpr int cost = 2000;
  static constexpr bool has_versions = false;
  template <class T>
  LEAT_DEVICE T operator()(T x) const {
    if (x != x) return x;
    const double y = dawson(std::abs(static_cast<double>(x)));
    return static_cast<T>(x < T(0) ? -y : y);
  }
};

struct Expint {
  static constexpr int cost = 1500;
  static constexpr bool has_versions = false;
  template <class T>
  LEAT_DEVICE T operator()(T x) const {
    if (!(x >= T(0))) return std::numeric_limits<T>::quiet_NaN();  // as TensorFlow has it
    return static_cast<T>(exponential_integral(x));
  }
};

template <bool sine>
struct Fresnel {
  static constexpr int cost = 2000;
  static constexpr bool has_versions = false;
  template <class T>
  LEAT_DEVICE T operator()(T x) const {
    if (x != x) return x;
    const double y = fresnel(std::abs(static_cast<double>(x)), sine);
    return static_cast<T>(x < T(0) ? -y : y);
  }
};

struct Spence {
  static constexpr int cost = 500;
  static constexpr bool has_versions = false;
  template <class T>
  LEAT_DEVICE T operator()(T x) const {
    if (!(x >= T(0))) return std::numeric_limits<T>::quiet_NaN();
    return static_cast<T>(spence(x));
  }
};

template <class F>
OpDef integral(std::string name, std::string doc, std::initializer_list<float> expected,
               GradientFunction gradient) {
  return unary<F>({
      .name = std::move(name),
      .doc = std::move(doc),
      .gradient = std::move(gradient),
      .examples = {{.inputs = {floats({0.25F, 1, 3})}, .outputs = {floats(expected)}}},
  });
}

const Op dawsn_op{integral<Dawsn>(
    "Dawsn", "y = e^(-x²) times the integral of e^(t²) from 0 to x: Dawson's integral.",
    {0.23983916F, 0.53807951F, 0.17827103F},
    [](Gradient& g) { g.dx() = g.dy() * (1 - (g.x() * g.y()) * 2); })};

const Op expint_op{
    integral<Expint>("Expint", "y = Ei(x), the integral of e^t / t from -∞ to x; NaN for x < 0.",
                     {-0.54254326F, 1.8951178F, 9.9338326F},
                     [](Gradient& g) { g.dx() = g.dy() * exp(g.x()) / g.x(); })};

const Op fresnel_cos_op{integral<Fresnel<false>>(
    "FresnelCos", "y = the integral of cos(π t² / 2) from 0 to x.",
    {0.24975915F, 0.77989340F, 0.60572079F},
    [](Gradient& g) { g.dx() = g.dy() * op("Cos", {square(g.x()) * (pi / 2)}); })};

const Op fresnel_sin_op{integral<Fresnel<true>>(
    "FresnelSin", "y = the integral of sin(π t² / 2) from 0 to x.",
    {0.00817560F, 0.43825915F, 0.49631300F},
    [](Gradient& g) { g.dx() = g.dy() * op("Sin", {square(g.x()) * (pi / 2)}); })};

const Op spence_op{
    integral<Spence>("Spence", "y = the integral of log(t) / (1 - t) from 1 to x; NaN for x < 0.",
                     {0.97846940F, 0, -1.4367464F}, [](Gradient& g) {
                       const Output x = g.x();
                       g.dx() = g.dy() * where(equal(x, 1), -1, log(x) / (1 - x));
                     })};

}  // namespace
}  // namespace leat
