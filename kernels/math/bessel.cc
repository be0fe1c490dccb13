// leat: cpu+cuda
// Bessel functions of orders 0 and 1: J, Y, and the modified I and K, these also scaled by e^-|x|
// and e^x. Computes in double precision. J and Y are the C library's.
#include "kernels/elementwise_ops.h"

namespace leat {
namespace {

constexpr double infinity = std::numeric_limits<double>::infinity();
constexpr double pi = 3.14159265358979323846, euler = 0.57721566490153286061;

// I of |x|, times e^-|x| if scaled: the power series, all of whose terms are positive, or, where
// that needs too many terms, Hankel's expansion (DLMF 10.25.2 and 10.40.1).
LEAT_DEVICE double bessel_i(int order, double x, bool scaled) {
  x = std::abs(x);
  if (x < 20) {
    const double square = x * x / 4;
    double term = order == 0 ? 1 : x / 2, sum = term;
    for (int k = 1; term > 1e-17 * sum; ++k) {
      term *= square / (static_cast<double>(k) * (k + order));
      sum += term;
    }
    return scaled ? sum * std::exp(-x) : sum;
  }
  if (x == infinity) return scaled ? 0 : infinity;
  double term = 1, sum = 1;
  for (int k = 1; k < 40 && std::abs(term) > 1e-17; ++k) {
    const double odd = 2 * k - 1;
    term *= (odd * odd - 4 * order) / (8 * k * x);
    sum += term;
  }
  sum /= std::sqrt(2 * pi * x);
  const double root = scaled ? 1 : std::exp(x / 2);  // e^x alone may be too large
  return root * sum * root;
}

// K of x > 0, times e^x if scaled: the series in DLMF 10.31, or for x > 1 the trapezoidal rule for
// the integral of e^(-x cosh t) cosh(order t), whose error is about e^-40 with these steps
// (Trefethen and Weideman, "The exponentially convergent trapezoidal rule", 2014).
LEAT_DEVICE double bessel_k(int order, double x, bool scaled) {
  if (x <= 0) return infinity;  // as TensorFlow has it, also for x < 0
  if (x == infinity) return 0;
  if (x <= 1) {
    const double square = x * x / 4;
    double term = order == 0 ? 1 : x / 2;
    double digammas = -euler + (order == 0 ? -euler : 1 - euler);  // ψ(k + 1) + ψ(k + order + 1)
    double series = term * digammas / 2;
    for (int k = 1; term > 1e-18; ++k) {
      term *= square / (static_cast<double>(k) * (k + order));
      digammas += 1.0 / k + 1.0 / (k + order);
      series += term * digammas / 2;
    }
    const double log_term = std::log(x / 2) * bessel_i(order, x, false);
    const double sum = order == 0 ? series - log_term : 1 / x + log_term - series;
    return scaled ? sum * std::exp(x) : sum;
  }
  const double step = x < 100 ? pi * pi / (40 + x) : 0.7 / std::sqrt(x);
  double sum = 0.5;
  for (int k = 1;; ++k) {
    const double sinh_of_half = std::sinh(k * step / 2);
    const double exponent = 2 * (x * sinh_of_half) * sinh_of_half;  // x (cosh t - 1)
    if (!(exponent < 45)) break;
    const double weight = order == 0 ? 1 : 1 + 2 * sinh_of_half * sinh_of_half;
    sum += std::exp(-exponent) * weight;
  }
  return scaled ? sum * step : sum * step * std::exp(-x);
}

template <int order, bool scaled>
struct BesselI {
  static constexpr int cost = 1500;
  static constexpr bool has_versions = false;
  template <class T>
  LEAT_DEVICE T operator()(T x) const {
    if (x != x) return x;
    const double y = bessel_i(order, x, scaled);
    return static_cast<T>(order == 1 && x < T(0) ? -y : y);
  }
};

template <int order, bool scaled>
struct BesselK {
  static constexpr int cost = 5000;
  static constexpr bool has_versions = false;
  template <class T>
  LEAT_DEVICE T operator()(T x) const {
    return x != x ? x : static_cast<T>(bessel_k(order, x, scaled));
  }
};

template <int order>
struct BesselJ {
  static constexpr int cost = 400;
  static constexpr bool has_versions = false;
  template <class T>
  LEAT_DEVICE T operator()(T x) const {
    return static_cast<T>(order == 0 ? ::j0(static_cast<double>(x)) : ::j1(static_cast<double>(x)));
  }
};

template <int order>
struct BesselY {
  static constexpr int cost = 400;
  static constexpr bool has_versions = false;
  template <class T>
  LEAT_DEVICE T operator()(T x) const {
    if (x <= T(0)) return -std::numeric_limits<T>::infinity();  // as TensorFlow has it
    return static_cast<T>(order == 0 ? ::y0(static_cast<double>(x)) : ::y1(static_cast<double>(x)));
  }
};

template <class F>
OpDef bessel(std::string name, std::string doc, std::initializer_list<float> expected,
             GradientFunction gradient) {
  return unary<F>({
      .name = std::move(name),
      .doc = std::move(doc),
      .gradient = std::move(gradient),
      .examples = {{.inputs = {floats({1, 2, 30})}, .outputs = {floats(expected)}}},
  });
}

// dx = dy of_zero where x is 0, dy slope elsewhere: slope divides by x.
Output times_slope(Gradient& g, double of_zero, const Output& slope) {
  return g.dy() * where(equal(g.x(), 0), of_zero, slope);
}

const Op i0_op{bessel<BesselI<0, false>>(
    "BesselI0", "y = I_0(x), the modified Bessel function of the first kind of order 0.",
    {1.2660659F, 2.2795853F, 7.816723e11F},
    [](Gradient& g) { g.dx() = g.dy() * op("BesselI1", {g.x()}); })};

const Op i0e_op{bessel<BesselI<0, true>>(
    "BesselI0e", "y = e^-|x| I_0(x).", {0.46575961F, 0.30850832F, 0.07314474F}, [](Gradient& g) {
      const Output x = g.x();
      g.dx() = g.dy() * (op("BesselI1e", {x}) - sign(x) * g.y());
    })};

const Op i1_op{bessel<BesselI<1, false>>(
    "BesselI1", "y = I_1(x), the modified Bessel function of the first kind of order 1.",
    {0.56515910F, 1.5906368F, 7.685320e11F},
    [](Gradient& g) { g.dx() = times_slope(g, 1, op("BesselI0", {g.x()}) - g.y() / g.x()); })};

const Op i1e_op{bessel<BesselI<1, true>>(
    "BesselI1e", "y = e^-|x| I_1(x).", {0.20791042F, 0.21526929F, 0.07191493F}, [](Gradient& g) {
      const Output x = g.x();
      g.dx() = times_slope(g, 0.5, op("BesselI0e", {x}) - g.y() * (sign(x) + reciprocal(x)));
    })};

const Op k0_op{bessel<BesselK<0, false>>(
    "BesselK0", "y = K_0(x), the modified Bessel function of the second kind of order 0.",
    {0.42102444F, 0.11389387F, 2.1324774e-14F},
    [](Gradient& g) { g.dx() = -(g.dy() * op("BesselK1", {g.x()})); })};

const Op k0e_op{bessel<BesselK<0, true>>(
    "BesselK0e", "y = e^x K_0(x).", {1.1444631F, 0.84156822F, 0.22788667F},
    [](Gradient& g) { g.dx() = g.dy() * (g.y() - op("BesselK1e", {g.x()})); })};

const Op k1_op{bessel<BesselK<1, false>>(
    "BesselK1", "y = K_1(x), the modified Bessel function of the second kind of order 1.",
    {0.60190723F, 0.13986588F, 2.1677320e-14F},
    [](Gradient& g) { g.dx() = -(g.dy() * (op("BesselK0", {g.x()}) + g.y() / g.x())); })};

const Op k1e_op{bessel<BesselK<1, true>>(
    "BesselK1e", "y = e^x K_1(x).", {1.6361535F, 1.0334768F, 0.23165413F}, [](Gradient& g) {
      const Output x = g.x();
      g.dx() = g.dy() * (g.y() * (1 - reciprocal(x)) - op("BesselK0e", {x}));
    })};

const Op j0_op{
    bessel<BesselJ<0>>("BesselJ0", "y = J_0(x), the Bessel function of the first kind of order 0.",
                       {0.76519769F, 0.22389078F, -0.08636798F},
                       [](Gradient& g) { g.dx() = -(g.dy() * op("BesselJ1", {g.x()})); })};

const Op j1_op{bessel<BesselJ<1>>(
    "BesselJ1", "y = J_1(x), the Bessel function of the first kind of order 1.",
    {0.44005059F, 0.57672481F, -0.11875107F},
    [](Gradient& g) { g.dx() = times_slope(g, 0.5, op("BesselJ0", {g.x()}) - g.y() / g.x()); })};

const Op y0_op{
    bessel<BesselY<0>>("BesselY0", "y = Y_0(x), the Bessel function of the second kind of order 0.",
                       {0.08825696F, 0.51037567F, -0.11729573F},
                       [](Gradient& g) { g.dx() = -(g.dy() * op("BesselY1", {g.x()})); })};

const Op y1_op{bessel<BesselY<1>>(
    "BesselY1", "y = Y_1(x), the Bessel function of the second kind of order 1.",
    {-0.78121282F, -0.10703243F, 0.08442557F},
    [](Gradient& g) { g.dx() = g.dy() * (op("BesselY0", {g.x()}) - g.y() / g.x()); })};

}  // namespace
}  // namespace leat
