// leat: cpu+cuda
// leat: fast-math-loops
// Roots and reciprocals, with the ops that TensorFlow has for their gradients.
#include "kernels/math/functors.h"

namespace leat {
namespace {

const Op sqrt_op{unary_with_complex<Sqrt>({
    .name = "Sqrt",
    .doc = "y = √x, elementwise.",
    .gradient = [](Gradient& g) { g.dx() = sqrt_grad(g.y(), g.dy()); },
    .examples = {{.inputs = {floats({4, 2})}, .outputs = {floats({2, 1.4142135})}}},
    .has_complex_gradient = true,
})};

const Op sqrt_grad_op{gradient_by_output<SqrtGrad>({
    .name = "SqrtGrad",
    .doc = "z = dy / 2y, the gradient of y = √x.",
    .gradient =
        [](Gradient& g) {
          const Output share = g.dy() / g.x(0);
          g.dx(0) = -(conj(share) * g.y());
          g.dx(1) = share * 0.5;
        },
    .examples = {{.inputs = {floats({2, 4}), floats({1, 2})}, .outputs = {floats({0.25, 0.25})}}},
    .has_complex_gradient = true,
})};

const Op rsqrt_op{unary_with_complex<Rsqrt>({
    .name = "Rsqrt",
    .doc = "y = 1 / √x, elementwise.",
    .gradient = [](Gradient& g) { g.dx() = rsqrt_grad(g.y(), g.dy()); },
    .examples = {{.inputs = {floats({4, 0.25})}, .outputs = {floats({0.5, 2})}}},
    .has_complex_gradient = true,
})};

const Op rsqrt_grad_op{gradient_by_output<RsqrtGrad>({
    .name = "RsqrtGrad",
    .doc = "z = -dy y³ / 2, the gradient of y = 1 / √x.",
    .gradient =
        [](Gradient& g) {
          const Output y = conj(g.x(0));
          g.dx(0) = (conj(g.dy()) * g.x(1)) * (-1.5 * square(y));
          g.dx(1) = rsqrt_grad(y, g.dy());
        },
    .examples = {{.inputs = {floats({2, 1}), floats({1, 4})}, .outputs = {floats({-4, -2})}}},
    .has_complex_gradient = true,
})};

const OpDef reciprocal_def = unary({
    .name = "Reciprocal",
    .doc = "y = 1 / x, elementwise.",
    .attrs = {signed_or_complex_attr},
    .gradient = [](Gradient& g) { g.dx() = reciprocal_grad(g.y(), g.dy()); },
    .kernels = elementwise_with_complex<Reciprocal, SignedTypes>(),
    .examples = {{.inputs = {floats({2, -4})}, .outputs = {floats({0.5, -0.25})}}},
    .has_complex_gradient = true,
});

const OpDef reciprocal_grad_def = gradient_by_output<ReciprocalGrad>({
    .name = "ReciprocalGrad",
    .doc = "z = -dy y², the gradient of y = 1 / x.",
    .gradient =
        [](Gradient& g) {
          const Output y = conj(g.x(0));
          g.dx(0) = (-2 * conj(g.dy())) * (y * g.x(1));
          g.dx(1) = reciprocal_grad(y, g.dy());
        },
    .examples = {{.inputs = {floats({2, 1}), floats({1, 4})}, .outputs = {floats({-4, -4})}}},
    .has_complex_gradient = true,
});

// Each has a second, older name.
OpDef renamed(OpDef op, std::string name) {
  op.name = std::move(name);
  return op;
}
const Op reciprocal_op(reciprocal_def), inv_op(renamed(reciprocal_def, "Inv"));
const Op reciprocal_grad_op(reciprocal_grad_def),
    inv_grad_op(renamed(reciprocal_grad_def, "InvGrad"));

}  // namespace
}  // namespace leat
