// leat: cpu+cuda
// leat: fast-math-loops
// Bessel functions of orders 0 and 1: J, Y, and the modified I and K, these also scaled by e^-|x|
// and e^x. Computes in double precision. J and Y are the C library's.
#include "kernels/elementwise_ops.h"

namespace leat {
namespace {

constexpr double infinity = std::numeric_limits<double>::infinity();
constexpr double pi = 3.14159265358979323846, euler = 0.57721566490153286061;

// The sum of coefficients[k] T_(n - 1 - k)(x / 2), the last one halved, by C. Clenshaw's recurrence
// ("A note on the summation of Chebyshev series", 1955), written out for vectors.
template <int k = 0, int n>
LEAT_DEVICE double chebyshev(const double (&coefficients)[n], double x, double b1 = 0,
                             double b2 = 0) {
  const double b0 = x * b1 + (coefficients[k] - b2);
  if constexpr (k + 1 < n) {
    return chebyshev<k + 1>(coefficients, x, b0, b1);
  } else {
    return 0.5 * (b0 - b2);
  }
}

// The coefficients that a result of type T has no digits for: the first ones.
template <class T>
constexpr int left_out_near = sizeof(T) < sizeof(double) ? 12 : 0;
template <class T>
constexpr int left_out_far = sizeof(T) < sizeof(double) ? 18 : 0;

// e^-x I_0(x) and e^-x I_1(x) for x >= 0: the Chebyshev series of Cephes (S. Moshier, "Methods and
// programs for mathematical functions", 1989; i0.c, i1.c), up to 8 in x, beyond that in 1 / x.
template <class T>
LEAT_DEVICE double bessel_i0e(double x) {
  constexpr double near[] = {
      -4.41534164647933937950E-18, 3.33079451882223809783E-17,  -2.43127984654795469359E-16,
      1.71539128555513303061E-15,  -1.16853328779934516808E-14, 7.67618549860493561688E-14,
      -4.85644678311192946090E-13, 2.95505266312963983461E-12,  -1.72682629144155570723E-11,
      9.67580903537323691224E-11,  -5.18979560163526290666E-10, 2.65982372468238665035E-9,
      -1.30002500998624804212E-8,  6.04699502254191894932E-8,   -2.67079385394061173391E-7,
      1.11738753912010371815E-6,   -4.41673835845875056359E-6,  1.64484480707288970893E-5,
      -5.75419501008210370398E-5,  1.88502885095841655729E-4,   -5.76375574538582365885E-4,
      1.63947561694133579842E-3,   -4.32430999505057594430E-3,  1.05464603945949983183E-2,
      -2.37374148058994688156E-2,  4.93052842396707084878E-2,   -9.49010970480476444210E-2,
      1.71620901522208775349E-1,   -3.04682672343198398683E-1,  6.76795274409476084995E-1};
  constexpr double far[] = {
      -7.23318048787475395456E-18, -4.83050448594418207126E-18, 4.46562142029675999901E-17,
      3.46122286769746109310E-17,  -2.82762398051658348494E-16, -3.42548561967721913462E-16,
      1.77256013305652638360E-15,  3.81168066935262242075E-15,  -9.55484669882830764870E-15,
      -4.15056934728722208663E-14, 1.54008621752140982691E-14,  3.85277838274214270114E-13,
      7.18012445138366623367E-13,  -1.79417853150680611778E-12, -1.32158118404477131188E-11,
      -3.14991652796324136454E-11, 1.18891471078464383424E-11,  4.94060238822496958910E-10,
      3.39623202570838634515E-9,   2.26666899049817806459E-8,   2.04891858946906374183E-7,
      2.89137052083475648297E-6,   6.88975834691682398426E-5,   3.36911647825569408990E-3,
      8.04490411014108831608E-1};
  const double small = chebyshev<left_out_near<T>>(near, x / 2 - 2),
               large = chebyshev<left_out_far<T>>(far, 32 / x - 2) / std::sqrt(x);
  return x <= 8 ? small : large;
}

template <class T>
LEAT_DEVICE double bessel_i1e(double x) {
  constexpr double near[] = {
      2.77791411276104639959E-18,  -2.11142121435816608115E-17, 1.55363195773620046921E-16,
      -1.10559694773538630805E-15, 7.60068429473540693410E-15,  -5.04218550472791168711E-14,
      3.22379336594557470981E-13,  -1.98397439776494371520E-12, 1.17361862988909016308E-11,
      -6.66348972350202774223E-11, 3.62559028155211703701E-10,  -1.88724975172282928790E-9,
      9.38153738649577178388E-9,   -4.44505912879632808065E-8,  2.00329475355213526229E-7,
      -8.56872026469545474066E-7,  3.47025130813767847674E-6,   -1.32731636560394358279E-5,
      4.78156510755005422638E-5,   -1.61760815825896745588E-4,  5.12285956168575772895E-4,
      -1.51357245063125314899E-3,  4.15642294431288815669E-3,   -1.05640848946261981558E-2,
      2.47264490306265168283E-2,   -5.29459812080949914269E-2,  1.02643658689847095384E-1,
      -1.76416518357834055153E-1,  2.52587186443633654823E-1};
  constexpr double far[] = {
      7.51729631084210481353E-18,  4.41434832307170791151E-18,  -4.65030536848935832153E-17,
      -3.20952592199342395980E-17, 2.96262899764595013876E-16,  3.30820231092092828324E-16,
      -1.88035477551078244854E-15, -3.81440307243700780478E-15, 1.04202769841288027642E-14,
      4.27244001671195135429E-14,  -2.10154184277266431302E-14, -4.08355111109219731823E-13,
      -7.19855177624590851209E-13, 2.03562854414708950722E-12,  1.41258074366137813316E-11,
      3.25260358301548823856E-11,  -1.89749581235054123450E-11, -5.58974346219658380687E-10,
      -3.83538038596423702205E-9,  -2.63146884688951950684E-8,  -2.51223623787020892529E-7,
      -3.88256480887769039346E-6,  -1.10588938762623716291E-4,  -9.76109749136146840777E-3,
      7.78576235018280120474E-1};
  const double small = x * chebyshev<left_out_near<T>>(near, x / 2 - 2),
               large = chebyshev<left_out_far<T>>(far, 32 / x - 2) / std::sqrt(x);
  return x <= 8 ? small : large;
}

// I of |x|, times e^-|x| if scaled, for a result of type T.
template <class T>
LEAT_DEVICE double bessel_i(int order, double x, bool scaled) {
  x = std::abs(x);
  const double y = order == 0 ? bessel_i0e<T>(x) : bessel_i1e<T>(x);
  if (scaled) return y;
  const double root = std::exp(x / 2);  // e^x alone may be too large
  return x == infinity ? infinity : root * y * root;
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
    const double log_term = std::log(x / 2) * bessel_i<double>(order, x, false);
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
  static constexpr int cost = 40;
  template <class T>
  LEAT_DEVICE T operator()(T x) const {
    const double y = bessel_i<T>(order, static_cast<double>(x), scaled);
    return x != x ? x : static_cast<T>(order == 1 && x < T(0) ? -y : y);
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
