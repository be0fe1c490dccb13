// leat: cpu+cuda
// Abs and Sign.
#include "kernels/elementwise_ops.h"
#include "kernels/wrapping.h"

namespace leat {
namespace {

struct Abs {
  template <class T>
  LEAT_DEVICE T operator()(T x) const {
    if constexpr (std::is_integral_v<T>) {
      return x < T(0) ? static_cast<T>(-Wrapping<T>(x)) : x;
    } else {
      return std::abs(x);
    }
  }
};

struct Sign {
  template <class T>
  LEAT_DEVICE T operator()(T x) const {
    if constexpr (is_complex_type<T>) {
      return x == T(0) ? x : x / std::abs(x);
    } else {
      return x > T(0) ? T(1) : x < T(0) ? T(-1) : x;  // NaN and zeros stay as they are
    }
  }
};

const Op abs_op{unary({
    .name = "Abs",
    .doc = "y = |x|, elementwise.",
    .attrs = {"T: {bfloat16, half, float, double, int8, int16, int32, int64}"},
    .gradient = [](Gradient& g) { g.dx() = g.dy() * sign(g.x()); },
    .kernels = elementwise<Abs, SignedTypes>(),
    .examples = {{.inputs = {floats({-1, 2})}, .outputs = {floats({1, 2})}}},
})};

const Op sign_op{unary({
    .name = "Sign",
    .doc = "y = -1, 0 or 1: the sign of x, elementwise; x / |x| of complex numbers.",
    .attrs = {signed_or_complex_attr},
    .kernels = elementwise_with_complex<Sign, SignedTypes>(),
    .examples = {{.inputs = {floats({-3, 0, 2})}, .outputs = {floats({-1, 0, 1})}}},
    .is_not_differentiable = true,
})};

}  // namespace
}  // namespace leat
