// leat: cpu+cuda
// Incomplete gamma functions and their derivatives: Igamma, Igammac, IgammaGradA and
// RandomGammaGrad. Where x is below a or 1, computes P by its power series, else Q by its continued
// fraction (Abramowitz and Stegun, 6.5.29 and 6.5.31); both are differentiated with respect to a,
// term by term.
#include "kernels/math/digamma.h"

namespace leat {
namespace {

// P(a, x) = prefix / a * value, with its derivative with respect to a; prefix = x^a e^-x / Γ(a).
// Ends at a term of no more than `accuracy` of the value.
struct Series {
  double value = 1, derivative = 0;

  LEAT_DEVICE Series(double a, double x, double accuracy = 1e-17) {
    double term = 1, log_derivative = 0;
    for (int i = 1; i < 5000; ++i) {
      log_derivative -= 1 / (a + i);
      term *= x / (a + i);
      value += term;
      derivative += term * log_derivative;
      if (term <= value * accuracy) break;
    }
  }
};

// Q(a, x) = prefix * value. Ends at a step that changes the value, and the derivative where it is
// wanted, by no more than `accuracy`.
template <bool with_derivative>
struct Fraction {
  double value = 0, derivative = 0;

  LEAT_DEVICE Fraction(double a, double x, double accuracy = 2e-16) {
    constexpr double big = 4503599627370496.0;
    double y = 1 - a, z = x + y + 1;
    double p2 = 1, q2 = x, p1 = x + 1, q1 = z * x;  // of the two steps before
    double dp2 = 0, dq2 = 0, dp1 = 0, dq1 = -x;
    value = p1 / q1;
    derivative = -value * dq1 / q1;
    for (int i = 1; i < 5000; ++i) {
      y += 1;
      z += 2;
      const double yc = y * i;
      const double p = p1 * z - p2 * yc, q = q1 * z - q2 * yc;
      const double dp = dp1 * z - p1 - dp2 * yc + p2 * i, dq = dq1 * z - q1 - dq2 * yc + q2 * i;
      double change = 1;
      if (q != 0) {
        const double next = p / q, next_derivative = (dp - next * dq) / q;
        change = std::abs(next - value) / std::abs(next);
        if (with_derivative) change += std::abs(next_derivative - derivative);
        value = next;
        derivative = next_derivative;
      }
      p2 = p1, q2 = q1, p1 = p, q1 = q;
      dp2 = dp1, dq2 = dq1, dp1 = dp, dq1 = dq;
      if (std::abs(p) > big) {
        p2 /= big, q2 /= big, p1 /= big, q1 /= big;
        dp2 /= big, dq2 /= big, dp1 /= big, dq1 /= big;
      }
      if (change <= accuracy) break;
    }
  }
};

LEAT_DEVICE bool uses_fraction(double a, double x) { return x > 1 && x > a; }
LEAT_DEVICE double prefix(double a, double x) {
  return std::exp(a * std::log(x) - x - std::lgamma(a));
}

// P, or Q = 1 - P, as a T. A float gets far more digits than it has, so that it is rounded from the
// same number but for ties.
template <class T>
LEAT_DEVICE double incomplete_gamma(double a, double x, bool upper) {
  constexpr bool is_double = sizeof(T) == sizeof(double);
  constexpr double infinity = std::numeric_limits<double>::infinity();
  if (x == 0 && !upper) return 0;  // as TensorFlow has it, for any a
  if (!(a > 0) || !(x >= 0)) return std::numeric_limits<double>::quiet_NaN();
  if (x == 0) return 1;
  if (a == infinity && x == infinity) return 0;  // the same
  if (x == infinity) return upper ? 0 : 1;
  if (a == infinity) return upper ? 1 : 0;
  if (uses_fraction(a, x)) {
    const double q = prefix(a, x) * Fraction<false>(a, x, is_double ? 2e-16 : 1e-11).value;
    return upper ? q : 1 - q;
  }
  const double p = prefix(a, x) / a * Series(a, x, is_double ? 1e-17 : 1e-11).value;
  return upper ? 1 - p : p;
}

// The derivative of P with respect to a, divided by the density prefix / x.
LEAT_DEVICE double slope_over_density(double a, double x) {
  if (uses_fraction(a, x)) {
    const Fraction<true> q(a, x);
    return -x * (q.derivative + q.value * (std::log(x) - Digamma{}(a)));
  }
  const Series p(a, x);
  return x / a * (p.value * (std::log(x) - Digamma{}(a + 1)) + p.derivative);
}

struct Igamma {
  static constexpr int cost = 2000;
  static constexpr bool has_versions = false;
  template <class T>
  LEAT_DEVICE T operator()(T a, T x) const {
    return static_cast<T>(incomplete_gamma<T>(a, x, false));
  }
};

struct Igammac {
  static constexpr int cost = 2000;
  static constexpr bool has_versions = false;
  template <class T>
  LEAT_DEVICE T operator()(T a, T x) const {
    return static_cast<T>(incomplete_gamma<T>(a, x, true));
  }
};

struct IgammaGradA {
  static constexpr int cost = 4000;
  static constexpr bool has_versions = false;
  template <class T>
  LEAT_DEVICE T operator()(T a, T x) const {
    if (x == T(0)) return T(0);
    if (!(a > T(0)) || !(x >= T(0))) return std::numeric_limits<T>::quiet_NaN();
    const double slope = slope_over_density(a, x) * prefix(a, x) / static_cast<double>(x);
    return static_cast<T>(slope);
  }
};

struct RandomGammaGrad {
  static constexpr int cost = 4000;
  static constexpr bool has_versions = false;
  template <class T>
  LEAT_DEVICE T operator()(T alpha, T sample) const {
    if (sample == T(0)) return T(0);
    if (!(alpha > T(0)) || !(sample >= T(0))) return std::numeric_limits<T>::quiet_NaN();
    return static_cast<T>(-slope_over_density(alpha, sample));
  }
};

// With respect to a and to x; the derivative with respect to x is the density.
GradientFunction gradient_of(double sign) {
  return [sign](Gradient& g) {
    const Output a = g.x(0), x = g.x(1);
    const Output log_density = ((a - 1) * log(x) - x) - op("Lgamma", {a});
    set_broadcast_gradients(g, (g.dy() * op("IgammaGradA", {a, x})) * sign,
                            (g.dy() * exp(log_density)) * sign);
  };
}

const char* const types = "T: {bfloat16, half, float, double}";

const Op igamma_op{{
    .name = "Igamma",
    .doc =
        "z = P(a, x) = the integral of t^(a - 1) e^-t from 0 to x, over Γ(a), with broadcasting.",
    .inputs = {"a: T", "x: T"},
    .outputs = {"z: T"},
    .attrs = {types},
    .shape = shapes::broadcast_binary(),
    .gradient = gradient_of(1),
    .kernels = elementwise<Igamma, FloatTypes>(),
    .examples = {{.inputs = {floats({1, 2}), floats({1})},
                  .outputs = {floats({0.63212056f, 0.26424112f})}}},
}};

const Op igammac_op{{
    .name = "Igammac",
    .doc = "z = Q(a, x) = 1 - P(a, x), with broadcasting: Igamma.",
    .inputs = {"a: T", "x: T"},
    .outputs = {"z: T"},
    .attrs = {types},
    .shape = shapes::broadcast_binary(),
    .gradient = gradient_of(-1),
    .kernels = elementwise<Igammac, FloatTypes>(),
    .examples = {{.inputs = {floats({1, 2}), floats({1})},
                  .outputs = {floats({0.36787944f, 0.73575888f})}}},
}};

const Op igamma_grad_op{{
    .name = "IgammaGradA",
    .doc = "z = the derivative of P(a, x) with respect to a, with broadcasting.",
    .inputs = {"a: T", "x: T"},
    .outputs = {"z: T"},
    .attrs = {"T: {float, double}"},
    .shape = shapes::broadcast_binary(),
    .kernels = elementwise<IgammaGradA, Types<float, double>>(),
    .examples = {{.inputs = {floats({1, 0.5f}), floats({1, 0.5f})},
                  .outputs = {floats({-0.43172971f, -0.64720035f})}}},
}};

const Op random_gamma_grad_op{{
    .name = "RandomGammaGrad",
    .doc = "output = the derivative of a number drawn by RandomGamma with respect to its alpha, "
           "with broadcasting: -dP(alpha, sample)/d alpha over the density at sample.",
    .inputs = {"alpha: T", "sample: T"},
    .outputs = {"output: T"},
    .attrs = {"T: {float, double}"},
    .shape = shapes::broadcast_binary(),
    .kernels = elementwise<RandomGammaGrad, Types<float, double>>(),
    .examples = {{.inputs = {floats({1}), floats({1})}, .outputs = {floats({1.173563f})}}},
}};

}  // namespace
}  // namespace leat
