// leat: cpu+cuda
// Mul, Neg, Square and SquaredDifference.
#include "kernels/math/functors.h"

namespace leat {
namespace {

const Op mul_op{binary({
    .name = "Mul",
    .doc = "z = x y with broadcasting.",
    .attrs = {number_or_complex_attr},
    .gradient = [](Gradient& g) { set_broadcast_gradients(g, g.dy() * g.x(1), g.dy() * g.x(0)); },
    .kernels = elementwise_with_complex<Mul>(),
    .examples = {{.inputs = {floats({2, 2}, {1, 2, 3, 4}), floats({2, 1}, {10, 100})},
                  .outputs = {floats({2, 2}, {10, 20, 300, 400})}}},
    .is_commutative = true,
})};

const Op neg_op{unary({
    .name = "Neg",
    .doc = "y = -x, elementwise.",
    .attrs = {signed_or_complex_attr},
    .gradient = [](Gradient& g) { g.dx() = -g.dy(); },
    .kernels = elementwise_with_complex<Neg, SignedTypes>(),
    .examples = {{.inputs = {floats({1, -2})}, .outputs = {floats({-1, 2})}}},
})};

const Op square_op{unary({
    .name = "Square",
    .doc = "y = x², elementwise.",
    .attrs = {"T: {bfloat16, half, float, double, int8, int16, int32, int64, uint8, uint16, "
              "uint32, uint64, complex64, "
              "complex128}"},
    .gradient = [](Gradient& g) { g.dx() = g.dy() * (2 * g.x()); },
    .kernels = elementwise_with_complex<Square>(),
    .examples = {{.inputs = {floats({1, -3})}, .outputs = {floats({1, 9})}}},
})};

const Op squared_difference_op{binary({
    .name = "SquaredDifference",
    .doc = "z = |x - y|² with broadcasting.",
    .attrs = {"T: {bfloat16, half, float, double, int32, int64, complex64, complex128}"},
    .gradient =
        [](Gradient& g) {
          // For complex numbers, whose results are real.
          const Output dy =
              is_complex(g.dy().dtype()) ? cast(real(g.dy()), g.dy().dtype()) : g.dy();
          const Output dx = (2 * dy) * (g.x(0) - g.x(1));
          set_broadcast_gradients(g, dx, -dx);
        },
    .kernels = elementwise_with_complex<SquaredDifference,
                                        Types<float, double, half, bfloat16, int32_t, int64_t>>(),
    .examples = {{.inputs = {floats({1, 5}), floats({3, 4})}, .outputs = {floats({4, 1})}}},
    .is_commutative = true,
    .has_complex_gradient = true,
})};

}  // namespace
}  // namespace leat
