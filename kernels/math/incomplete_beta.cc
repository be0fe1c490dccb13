// leat: cpu+cuda
// Betainc, the regularized incomplete beta function, in double precision.
#include "kernels/elementwise.h"

namespace leat {
namespace {

constexpr double half_log_two_pi = 0.91893853320467274178;
constexpr double large = 15;  // Stirling's series is exact to all digits from here on

// lnΓ(z) - ((z - 1/2) ln z - z + ln(2π) / 2), z >= large.
LEAT_DEVICE double stirling_error(double z) {
  const double r = 1 / (z * z);
  double sum = 691.0 / 360360;
  sum = 1.0 / 1188 - r * sum;
  sum = 1.0 / 1680 - r * sum;
  sum = 1.0 / 1260 - r * sum;
  sum = 1.0 / 360 - r * sum;
  return (1.0 / 12 - r * sum) / z;
}

LEAT_DEVICE double log_of_complement(double x, double y) {  // y = 1 - x
  return x < 0.5 ? std::log1p(-x) : std::log(y);
}

// log(x^a y^b / B(a, b)), y = 1 - x. Logarithms of gamma functions of large numbers are never
// subtracted: no digit would be left.
LEAT_DEVICE double log_density(double a, double b, double x, double y) {
  const double sum = a + b;
  if (a < large && b < large) {
    return a * log_of_complement(y, x) + b * log_of_complement(x, y) + std::lgamma(sum) -
           std::lgamma(a) - std::lgamma(b);
  }
  if (a >= large && b >= large) {
    // Relative to the maximum, at x = a / (a + b), where the first-order terms cancel.
    const double u = (x - a / sum) / (a / sum), v = -u * a / b;
    const double logs = std::abs(u) < 0.5 && std::abs(v) < 0.5
                            ? a * std::log1p(u) + b * std::log1p(v)
                            : a * std::log(x * (sum / a)) + b * std::log(y * (sum / b));
    return logs + 0.5 * std::log(a / sum * b) - half_log_two_pi + stirling_error(sum) -
           stirling_error(a) - stirling_error(b);
  }
  const bool exchange = a >= large;
  const double s = exchange ? b : a, l = exchange ? a : b;  // the small and the large one
  const double small_power = exchange ? y : x;
  const double log_large_power = exchange ? log_of_complement(y, x) : log_of_complement(x, y);
  return s * std::log(small_power * sum) + l * log_large_power + (l - 0.5) * std::log1p(s / l) - s +
         stirling_error(sum) - stirling_error(l) - std::lgamma(s);
}

// The continued fraction of DLMF 8.17.22 by Lentz's algorithm; it converges fast for
// x < (a + 1) / (a + b + 2), in about sqrt(max(a, b)) steps. Ends at a step that changes the value
// by no more than `accuracy` of it.
LEAT_DEVICE double fraction(double a, double b, double x, double accuracy) {
  constexpr double tiny = 1e-300;
  double c = 1, d = 1 - (a + b) * x / (a + 1);
  if (std::abs(d) < tiny) d = tiny;
  d = 1 / d;
  double value = d;
  for (int m = 1; m < 20000; ++m) {
    const double even = m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m));
    const double odd = -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1));
    double change = 1;
    for (int half = 0; half < 2; ++half) {
      const double numerator = half == 0 ? even : odd;
      d = 1 + numerator * d;
      if (std::abs(d) < tiny) d = tiny;
      c = 1 + numerator / c;
      if (std::abs(c) < tiny) c = tiny;
      d = 1 / d;
      change = c * d;
      value *= change;
    }
    if (std::abs(change - 1) <= accuracy) break;
  }
  return value;
}

LEAT_DEVICE double incomplete_beta(double a, double b, double x, double accuracy) {
  constexpr double infinity = std::numeric_limits<double>::infinity();
  constexpr double nan = std::numeric_limits<double>::quiet_NaN();
  if (a <= 0 || b <= 0) return nan;
  if (x == 0 || x == 1) return x;  // as TensorFlow has it, also of NaN and infinity
  if (!(a < infinity && b < infinity && x > 0 && x < 1)) return nan;
  const double y = 1 - x;
  const double density = std::exp(log_density(a, b, x, y));
  const double z = x <= (a + 1) / (a + b + 2) ? density * fraction(a, b, x, accuracy) / a
                                              : 1 - density * fraction(b, a, y, accuracy) / b;
  return z < 0 ? 0 : z > 1 ? 1 : z;
}

struct Betainc {
  static constexpr int cost = 5000;
  static constexpr bool has_versions = false;
  template <class T>
  LEAT_DEVICE T operator()(T a, T b, T x) const {
    // Far more digits than a float has, so that it is rounded from the same number but for ties.
    constexpr double accuracy = sizeof(T) == sizeof(float) ? 1e-11 : 3e-16;
    return static_cast<T>(incomplete_beta(a, b, x, accuracy));
  }
};

// The inputs that are not scalars have the same shape.
void infer(ShapeContext& c) {
  Shape common = Shape::unknown();
  bool all_scalars = true;
  for (int i = 0; i < 3; ++i) {
    const Shape& shape = c.input(i);
    if (shape.rank() == 0) continue;
    all_scalars = false;
    check(common.is_compatible(shape), "Shapes of a, b and x are inconsistent: ", c.input(0), ", ",
          c.input(1), ", ", c.input(2), "; those that are not scalars must have the same shape");
    common = common.merged(shape);
  }
  c.set_output(0, all_scalars ? Shape{} : common);
}

std::vector<Kernel> kernels() {
  Kernel kernel;
  kernel.device = kernel_device;
  kernel.types = {{"T", {f32, f64}}};
  kernel.prepare = [](const KernelRequest& request) {
    const BroadcastPlan plan = plan_broadcast(request);
    BoundKernel bound = visit_type(Types<float, double>{}, request.outputs[0].dtype, [&](auto tag) {
      using T = typename decltype(tag)::type;
      return bind_elementwise<Betainc, T, T, T, T>({}, plan);
    });
    return share_where_equal(std::move(bound), request);
  };
  return {kernel};
}

const Op betainc_op{{
    .name = "Betainc",
    .doc = "z = the integral of t^(a - 1) (1 - t)^(b - 1) from 0 to x, over B(a, b). Those of a, b "
           "and x that are no scalars have one shape. There is no gradient for a and b.",
    .inputs = {"a: T", "b: T", "x: T"},
    .outputs = {"z: T"},
    .attrs = {"T: {float, double}"},
    .shape = infer,
    .gradient =
        [](Gradient& g) {
          const Output a = g.x(0), b = g.x(1), x = g.x(2);
          const Output log_beta = op("Lgamma", {a}) + op("Lgamma", {b}) - op("Lgamma", {a + b});
          const Output log_density =
              op("Xlog1py", {b - 1, -x}) + op("Xlogy", {a - 1, x}) - log_beta;
          g.dx(2) = sum_to_shape_of(x, g.y(), exp(log_density) * g.dy());
        },
    .kernels = kernels(),
    .examples = {{.inputs = {floats({2, 0.5F}), floats({3, 0.5F}), floats({0.3F, 0.75F})},
                  .outputs = {floats({0.3483F, 0.66666667F})}}},
}};

}  // namespace
}  // namespace leat
