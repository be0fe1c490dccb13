// leat: cpu+cuda
// Functions of the gamma family: Lgamma, Digamma, Polygamma, Zeta. The series are those of the
// Cephes library.
#include "kernels/elementwise_ops.h"
#include "kernels/math/digamma.h"

namespace leat {
namespace {

struct Lgamma {
  static constexpr int cost = 100;
  static constexpr bool has_versions = false;
  template <class T>
  LEAT_DEVICE T operator()(T x) const {
    return std::lgamma(x);
  }
};

// Hurwitz's zeta function: the sum of (q + k)^-x for k ≥ 0. Adds some terms, and takes the rest
// from the Euler-Maclaurin formula.
struct Zeta {
  static constexpr int cost = 1000;
  static constexpr bool has_versions = false;
  template <class T>
  LEAT_DEVICE T operator()(T x, T q) const {
    constexpr T infinity = std::numeric_limits<T>::infinity();
    constexpr T nan = std::numeric_limits<T>::quiet_NaN();
    if (x == T(1)) return infinity;
    if (!(x > T(1))) return nan;
    if (q <= T(0)) {
      if (q == std::floor(q)) {
        return x == std::floor(x) && std::fmod(x, T(2)) == T(0) ? infinity : nan;
      }
      if (x != std::floor(x)) return nan;  // a negative number to a fractional power
    }
    constexpr T epsilon = std::numeric_limits<T>::epsilon() / 2;
    T sum = std::pow(q, -x), a = q, b = 0;
    for (int i = 0; i < 9 || a <= T(9); ++i) {
      a += T(1);
      b = std::pow(a, -x);
      sum += b;
      if ((b == T(0) && a > T(0)) || std::abs(b / sum) < epsilon) return sum;
    }
    const T last = a;
    sum += b * last / (x - T(1)) - T(0.5) * b;
    const T divisors[] = {T(12.0),
                          T(-720.0),
                          T(30240.0),
                          T(-1209600.0),
                          T(47900160.0),
                          T(-1.8924375803183791606e9),
                          T(7.47242496e10),
                          T(-2.950130727918164224e12),
                          T(1.1646782814350067249e14),
                          T(-4.5979787224074726105e15),
                          T(1.8152105401943546773e17),
                          T(-7.1661652561756670113e18)};
    T factor = 1, k = 0;
    for (const T divisor : divisors) {
      factor *= x + k;
      b /= last;
      const T term = factor * b / divisor;
      sum += term;
      if (std::abs(term / sum) < epsilon) return sum;
      factor *= x + k + T(1);
      b /= last;
      k += T(2);
    }
    return sum;
  }
};

struct Polygamma {
  static constexpr int cost = 1000;
  static constexpr bool has_versions = false;
  template <class T>
  LEAT_DEVICE T operator()(T n, T x) const {
    if (n < T(0) || n != std::floor(n)) return std::numeric_limits<T>::quiet_NaN();
    if (n == T(0)) return Digamma{}(x);
    const T sign = std::fmod(n, T(2)) == T(0) ? T(-1) : T(1);
    return sign * std::exp(std::lgamma(n + T(1))) * Zeta{}(n + T(1), x);
  }
};

const Op lgamma_op{unary<Lgamma>({
    .name = "Lgamma",
    .doc = "y = ln |Γ(x)|, elementwise.",
    .gradient = [](Gradient& g) { g.dx() = g.dy() * op("Digamma", {g.x()}); },
    .examples = {{.inputs = {floats({1, 4})}, .outputs = {floats({0, 1.7917595f})}}},
})};

const Op digamma_op{unary<Digamma>({
    .name = "Digamma",
    .doc = "y = ψ(x), the derivative of ln |Γ(x)|, elementwise.",
    .gradient =
        [](Gradient& g) {
          g.dx() = g.dy() * op("Polygamma", {ones_like(g.x()), g.x()});
        },
    .examples = {{.inputs = {floats({1, -0.5})}, .outputs = {floats({-0.57721566f, 0.03648998f})}}},
})};

const Op polygamma_op{{
    .name = "Polygamma",
    .doc = "z = the a-th derivative of ψ(x), with broadcasting; a is 0, 1, 2, ….",
    .inputs = {"a: T", "x: T"},
    .outputs = {"z: T"},
    .attrs = {"T: {float, double}"},
    .shape = shapes::broadcast_binary(),
    .gradient =
        [](Gradient& g) {
          const Output next = op("Polygamma", {g.x(0) + 1, g.x(1)});
          g.dx(1) = sum_to_shape_of(g.x(1), g.x(0), g.dy() * next);
        },
    .kernels = elementwise<Polygamma, Types<float, double>>(),
    .examples = {{.inputs = {floats({0, 1, 2}), floats({1})},
                  .outputs = {floats({-0.57721566f, 1.6449341f, -2.4041138f})}}},
}};

const Op zeta_op{{
    .name = "Zeta",
    .doc = "z = the sum of (q + k)^-x for k = 0, 1, …, with broadcasting.",
    .inputs = {"x: T", "q: T"},
    .outputs = {"z: T"},
    .attrs = {"T: {float, double}"},
    .shape = shapes::broadcast_binary(),
    .gradient =
        [](Gradient& g) {
          const Output x = g.x(0), q = g.x(1);
          const Output dq = -(x * op("Zeta", {x + 1, q}));
          g.dx(1) = sum_to_shape_of(q, x, g.dy() * dq);
        },
    .kernels = elementwise<Zeta, Types<float, double>>(),
    .examples = {{.inputs = {floats({2, 4}), floats({1})},
                  .outputs = {floats({1.6449341f, 1.0823232f})}}},
}};

}  // namespace
}  // namespace leat
