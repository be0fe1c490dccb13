// leat: cpu+cuda
// Ndtri and Erfinv: the inverses of the normal distribution function and of erf, by algorithm
// AS 241 (Wichura, "The percentage points of the normal distribution", 1988, PPND16).
#include "kernels/elementwise_ops.h"

namespace leat {
namespace {

template <int n>
LEAT_DEVICE double polynomial(const double (&coefficients)[n], double x) {
  double y = coefficients[n - 1];
  for (int i = n - 2; i >= 0; --i) y = y * x + coefficients[i];
  return y;
}

LEAT_DEVICE double central_quantile(double q) {
  constexpr double a[] = {3.3871328727963666080e0, 1.3314166789178437745e2, 1.9715909503065514427e3,
                          1.3731693765509461125e4, 4.5921953931549871457e4, 6.7265770927008700853e4,
                          3.3430575583588128105e4, 2.5090809287301226727e3};
  constexpr double b[] = {1,
                          4.2313330701600911252e1,
                          6.8718700749205790830e2,
                          5.3941960214247511077e3,
                          2.1213794301586595867e4,
                          3.9307895800092710610e4,
                          2.8729085735721942674e4,
                          5.2264952788528545610e3};
  const double r = 0.180625 - q * q;
  return q * polynomial(a, r) / polynomial(b, r);
}

LEAT_DEVICE double tail_quantile(double tail) {
  constexpr double c[] = {1.42343711074968357734e0,  4.63033784615654529590e0,
                          5.76949722146069140550e0,  3.64784832476320460504e0,
                          1.27045825245236838258e0,  2.41780725177450611770e-1,
                          2.27238449892691845833e-2, 7.74545014278341407640e-4};
  constexpr double d[] = {1,
                          2.05319162663775882187e0,
                          1.67638483018380384940e0,
                          6.89767334985100004550e-1,
                          1.48103976427480074590e-1,
                          1.51986665636164571966e-2,
                          5.47593808499534494600e-4,
                          1.05075007164441684324e-9};
  constexpr double e[] = {6.65790464350110377720e0,  5.46378491116411436990e0,
                          1.78482653991729133580e0,  2.96560571828504891230e-1,
                          2.65321895265761230930e-2, 1.24266094738807843860e-3,
                          2.71155556874348757815e-5, 2.01033439929228813265e-7};
  constexpr double f[] = {1,
                          5.99832206555887937690e-1,
                          1.36929880922735805310e-1,
                          1.48753612908506148525e-2,
                          7.86869131145613259100e-4,
                          1.84631831751005468180e-5,
                          1.42151175831644588870e-7,
                          2.04426310338993978564e-15};
  const double r = std::sqrt(-std::log(tail));
  return r <= 5 ? polynomial(c, r - 1.6) / polynomial(d, r - 1.6)
                : polynomial(e, r - 5) / polynomial(f, r - 5);
}

// The quantile of probability p, given as q = p - 1/2 and as its distance to the nearer of 0 and 1,
// so that neither loses digits.
LEAT_DEVICE double normal_quantile(double q, double tail) {
  if (!(tail >= 0)) return std::numeric_limits<double>::quiet_NaN();
  if (std::abs(q) <= 0.425) return central_quantile(q);
  const double y = tail == 0 ? std::numeric_limits<double>::infinity() : tail_quantile(tail);
  return q < 0 ? -y : y;
}

struct Ndtri {
  static constexpr int cost = 300;
  static constexpr bool has_versions = false;
  template <class T>
  LEAT_DEVICE T operator()(T x) const {
    const double p = x;
    return static_cast<T>(normal_quantile(p - 0.5, p < 0.5 ? p : 1 - p));
  }
};

struct Erfinv {
  static constexpr int cost = 300;
  static constexpr bool has_versions = false;
  template <class T>
  LEAT_DEVICE T operator()(T x) const {
    constexpr double root_half = 0.70710678118654752440;
    const double q = x / 2.0;
    return static_cast<T>(root_half * normal_quantile(q, 0.5 - std::abs(q)));
  }
};

const Op ndtri_op{unary<Ndtri>({
    .name = "Ndtri",
    .doc = "y = the x-quantile of the standard normal distribution; NaN outside [0, 1].",
    .gradient =
        [](Gradient& g) {
          constexpr double root_two_pi = 2.50662827463100050242;
          g.dx() = (g.dy() * root_two_pi) * exp(square(g.y()) / 2);
        },
    .examples = {{.inputs = {floats({0.5F, 0.025F, 1e-20F, 1})},
                  .outputs = {floats(
                      {0, -1.9599640F, -9.2623401F, std::numeric_limits<float>::infinity()})}}},
})};

const Op erfinv_op{unary<Erfinv>({
    .name = "Erfinv",
    .doc = "y with erf(y) = x; NaN outside [-1, 1].",
    .gradient =
        [](Gradient& g) {
          constexpr double half_root_pi = 0.88622692545275801365;
          g.dx() = (g.dy() * half_root_pi) * exp(square(g.y()));
        },
    .examples = {{.inputs = {floats({0.5F, -0.99F, 1e-8F, -1})},
                  .outputs = {floats({0.47693628F, -1.8213864F, 8.8622693e-9F,
                                      -std::numeric_limits<float>::infinity()})}}},
})};

}  // namespace
}  // namespace leat
