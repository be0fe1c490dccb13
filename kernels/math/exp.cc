// leat: cpu+cuda
// leat: fast-math-loops
// Exp, Log and Pow; Expm1 and Log1p; Erf and Erfc.
#include "kernels/elementwise_ops.h"
#include "kernels/powers.h"

#include "kernels/math/complex_math.h"

namespace leat {
namespace {

struct Exp {
  static constexpr int cost = 4;
  template <class T>
  LEAT_DEVICE T operator()(T x) const {
    return std::exp(x);
  }
};

struct Log {
  static constexpr int cost = 4;
  template <class T>
  LEAT_DEVICE T operator()(T x) const {
    return std::log(x);
  }
};

struct Expm1 {
  static constexpr int cost = 10;
  template <class T>
  LEAT_DEVICE T operator()(T x) const {
    return expm1_of(x);
  }
};

struct Log1p {
  static constexpr int cost = 10;
  template <class T>
  LEAT_DEVICE T operator()(T x) const {
    return log1p_of(x);
  }
};

struct Erf {
  static constexpr int cost = 20;
  template <class T>
  LEAT_DEVICE T operator()(T x) const {
    return std::erf(x);
  }
};

struct Erfc {
  static constexpr int cost = 20;
  template <class T>
  LEAT_DEVICE T operator()(T x) const {
    return std::erfc(x);
  }
};

struct Pow {
  static constexpr int cost = 10;
  template <class T>
  LEAT_DEVICE T operator()(T x, T y) const {
    if constexpr (std::is_integral_v<T>) {
      if (y < T(0)) {
        report_invalid("Integers to negative integer powers are not allowed");
        return T(0);
      }
      uint64_t power = 1;  // unsigned, so that overflow wraps
      for (uint64_t base = static_cast<uint64_t>(x), n = static_cast<uint64_t>(y); n > 0;
           n /= 2, base *= base) {
        if (n % 2 == 1) power *= base;
      }
      return static_cast<T>(power);
    } else {
      return std::pow(x, y);
    }
  }
  template <class T, class Loop>
  requires std::is_floating_point_v<T> LEAT_DEVICE static bool for_repeated(T y, const Loop& loop) {
    return for_usual_exponent(y, loop);
  }
};

const Op exp_op{unary_with_complex<Exp>({
    .name = "Exp",
    .doc = "y = e^x, elementwise.",
    .gradient = [](Gradient& g) { g.dx() = g.dy() * g.y(); },
    .examples = {{.inputs = {floats({0, 1})}, .outputs = {floats({1, 2.7182817})}}},
})};

const Op log_op{unary_with_complex<Log>({
    .name = "Log",
    .doc = "y = ln x, elementwise.",
    .gradient = [](Gradient& g) { g.dx() = g.dy() / g.x(); },
    .examples = {{.inputs = {floats({1, 2})}, .outputs = {floats({0, 0.6931472})}}},
})};

const Op expm1_op{unary_with_complex<Expm1>({
    .name = "Expm1",
    .doc = "y = e^x - 1, elementwise; exact for small x.",
    .gradient = [](Gradient& g) { g.dx() = g.dy() * exp(g.x()); },
    .examples = {{.inputs = {floats({0, 1, 1e-7f})}, .outputs = {floats({0, 1.7182818f, 1e-7f})}}},
})};

const Op log1p_op{unary_with_complex<Log1p>({
    .name = "Log1p",
    .doc = "y = ln(1 + x), elementwise; exact for small x.",
    .gradient = [](Gradient& g) { g.dx() = g.dy() / (1 + g.x()); },
    .examples = {{.inputs = {floats({0, 1, 1e-7f})}, .outputs = {floats({0, 0.6931472f, 1e-7f})}}},
})};

// 2/√π exp(-x²) dy
Output erf_gradient(Gradient& g) { return (1.1283791670955126 * exp(-square(g.x()))) * g.dy(); }

const Op erf_op{unary<Erf>({
    .name = "Erf",
    .doc = "y = 2/√π times the integral of exp(-t²) from 0 to x, elementwise.",
    .gradient = [](Gradient& g) { g.dx() = erf_gradient(g); },
    .examples = {{.inputs = {floats({0, 0.5})}, .outputs = {floats({0, 0.52049988f})}}},
})};

const Op erfc_op{unary<Erfc>({
    .name = "Erfc",
    .doc = "y = 1 - erf(x), elementwise; exact for large x.",
    .gradient = [](Gradient& g) { g.dx() = -erf_gradient(g); },
    .examples = {{.inputs = {floats({0, 0.5})}, .outputs = {floats({1, 0.47950012f})}}},
})};

const Op pow_op{binary({
    .name = "Pow",
    .doc = "z = x^y with broadcasting; integers take no negative powers.",
    .attrs =
        {"T: {bfloat16, float, half, double, int8, int16, int32, int64, complex64, complex128}"},
    .gradient =
        [](Gradient& g) {
          // ln x where it is defined; elsewhere no gradient flows to y, as in TensorFlow.
          const Output x = g.x(0), y = g.x(1);
          const Output has_log = is_complex(x.dtype()) ? not_equal(x, 0) : greater(x, 0);
          const Output log_x = where(has_log, log(where(has_log, x, ones_like(x))), 0);
          set_broadcast_gradients(g, (g.dy() * y) * pow(x, y - 1), (g.dy() * g.y()) * log_x);
        },
    .kernels = elementwise_with_complex<Pow, SignedTypes>(),
    .examples = {{.inputs = {floats({2, 4}), floats({3, 0.5})}, .outputs = {floats({8, 2})}},
                 {.inputs = {ints({2, -3}), ints({10, 3})}, .outputs = {ints({1024, -27})}}},
})};

}  // namespace
}  // namespace leat
