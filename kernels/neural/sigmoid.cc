// leat: cpu+cuda
// leat: fast-math-loops
// Sigmoid and Tanh, with the ops that TensorFlow has for their gradients.
#include "kernels/neural/functors.h"

namespace leat {
namespace {

const Op sigmoid_op{unary_with_complex<Sigmoid>({
    .name = "Sigmoid",
    .doc = "y = 1 / (1 + e^-x), elementwise.",
    .gradient = [](Gradient& g) { g.dx() = sigmoid_grad(g.y(), g.dy()); },
    .examples = {{.inputs = {floats({0, 2, -100})}, .outputs = {floats({0.5, 0.880797, 0})}}},
})};

const Op sigmoid_grad_op{gradient_by_output<SigmoidGrad>({
    .name = "SigmoidGrad",
    .doc = "z = dy y (1 - y), the gradient of the sigmoid y.",
    .gradient =
        [](Gradient& g) {
          g.dx(0) = (g.dy() * g.x(1)) * (1 - 2 * g.x(0));
          g.dx(1) = sigmoid_grad(g.x(0), g.dy());
        },
    .examples = {{.inputs = {floats({0.5, 1}), floats({4, 4})}, .outputs = {floats({1, 0})}}},
})};

const Op tanh_op{unary_with_complex<Tanh>({
    .name = "Tanh",
    .doc = "y = tanh x, elementwise.",
    .gradient = [](Gradient& g) { g.dx() = tanh_grad(g.y(), g.dy()); },
    .examples = {{.inputs = {floats({0, 1})}, .outputs = {floats({0, 0.7615942})}}},
})};

const Op tanh_grad_op{gradient_by_output<TanhGrad>({
    .name = "TanhGrad",
    .doc = "z = dy (1 - y²), the gradient of y = tanh x.",
    .gradient =
        [](Gradient& g) {
          g.dx(0) = (-2 * g.dy()) * (g.x(0) * g.x(1));
          g.dx(1) = tanh_grad(g.x(0), g.dy());
        },
    .examples = {{.inputs = {floats({0.5, 1}), floats({4, 4})}, .outputs = {floats({3, 0})}}},
})};

}  // namespace
}  // namespace leat
