// leat: cpu+cuda
// Abs and Sign.
#include "kernels/math/functors.h"

namespace leat {
namespace {

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
