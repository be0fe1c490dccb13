// leat: cpu+cuda
// leat: fast-math-loops
// Relatives of Relu: Relu6, LeakyRelu, Elu, Selu, Softplus, Softsign, with their gradients.
#include "kernels/neural/functors.h"

namespace leat {
namespace {

const char* const floating = "T: {half, bfloat16, float, double}";

// activations = F(features).
template <class F, class Supported = FloatTypes>
OpDef activation(OpDef op) {
  return with_defaults(std::move(op), {.inputs = {"features: T"},
                                       .outputs = {"activations: T"},
                                       .attrs = {floating},
                                       .shape = shapes::same_as(0),
                                       .kernels = elementwise<F, Supported>()});
}

// backprops = F(gradients, features). Elu and Selu give their outputs in place of features.
template <class F, class Supported = FloatTypes>
OpDef activation_gradient(OpDef op) {
  return with_defaults(std::move(op), {.inputs = {"gradients: T", "features: T"},
                                       .outputs = {"backprops: T"},
                                       .attrs = {floating},
                                       .shape = shapes::same_for_all(),
                                       .kernels = elementwise<F, Supported>()});
}

const std::vector<std::string> leaky_attrs = {"alpha: float = 0.2",
                                              "T: {half, bfloat16, float, double} = float"};

const Op relu6_op{activation<Relu6, NumberTypes>({
    .name = "Relu6",
    .doc = "y = min(max(x, 0), 6), elementwise.",
    .attrs = {"T: realnumbertype"},
    .gradient =
        [](Gradient& g) {
          g.dx() = op("Relu6Grad", {g.dy(), g.y()});
        },
    .examples = {{.inputs = {floats({-1, 2, 7})}, .outputs = {floats({0, 2, 6})}}},
})};

const Op relu6_grad_op{activation_gradient<Relu6Grad, NumberTypes>({
    .name = "Relu6Grad",
    .doc = "dx = dy where 0 < x < 6, else 0; x may be Relu6's input or its output.",
    .attrs = {"T: realnumbertype"},
    .gradient =
        [](Gradient& g) {
          g.dx(0) = op("Relu6Grad", {g.dy(), g.x(1)});
        },
    .examples = {{.inputs = {floats({3, 4, 5}), floats({-1, 2, 6})},
                  .outputs = {floats({0, 4, 0})}}},
})};

Output leaky_relu_grad(Gradient& g, Output x) {
  return op("LeakyReluGrad", {g.dy(), x}, {{"alpha", g.attr<float>("alpha")}});
}

const Op leaky_relu_op{activation<LeakyRelu>({
    .name = "LeakyRelu",
    .doc = "y = x where x > 0, else alpha * x.",
    .attrs = leaky_attrs,
    .gradient = [](Gradient& g) { g.dx() = leaky_relu_grad(g, g.x()); },
    .examples = {{.inputs = {floats({-2, 0, 2})},
                  .attrs = {{"alpha", 0.5}},
                  .outputs = {floats({-1, 0, 2})}}},
})};

const Op leaky_relu_grad_op{activation_gradient<LeakyReluGrad>({
    .name = "LeakyReluGrad",
    .doc = "dx = dy where x > 0, else alpha * dy.",
    .attrs = leaky_attrs,
    .gradient = [](Gradient& g) { g.dx(0) = leaky_relu_grad(g, g.x(1)); },
    .examples = {{.inputs = {floats({2, 4}), floats({-1, 1})},
                  .attrs = {{"alpha", 0.5}},
                  .outputs = {floats({1, 4})}}},
})};

// The gradient of dx = dy * f'(y) with respect to y: dy where y < 0, else 0.
Output where_negative(Gradient& g) { return where(less(g.x(1), 0), g.dy() * g.x(0), 0); }

const Op elu_op{activation<Elu>({
    .name = "Elu",
    .doc = "y = x where x >= 0, else exp(x) - 1.",
    .gradient =
        [](Gradient& g) {
          g.dx() = op("EluGrad", {g.dy(), g.y()});
        },
    .examples = {{.inputs = {floats({-1, 0, 2})}, .outputs = {floats({-0.6321206f, 0, 2})}}},
})};

const Op elu_grad_op{activation_gradient<EluGrad>({
    .name = "EluGrad",
    .doc = "dx = dy where Elu's output >= 0, else dy * (output + 1).",
    .inputs = {"gradients: T", "outputs: T"},
    .gradient =
        [](Gradient& g) {
          g.dx(0) = op("EluGrad", {g.dy(), g.x(1)});
          g.dx(1) = where_negative(g);
        },
    .examples = {{.inputs = {floats({2, 4}), floats({-0.5f, 1})}, .outputs = {floats({1, 4})}}},
})};

const Op selu_op{activation<Selu>({
    .name = "Selu",
    .doc =
        "y = scale * x where x >= 0, else scale * alpha * (exp(x) - 1); scale = 1.0507…, alpha = "
        "1.6733….",
    .gradient =
        [](Gradient& g) {
          g.dx() = op("SeluGrad", {g.dy(), g.y()});
        },
    .examples = {{.inputs = {floats({-1, 0, 2})},
                  .outputs = {floats({-1.1113307f, 0, 2.1014020f})}}},
})};

const Op selu_grad_op{activation_gradient<SeluGrad>({
    .name = "SeluGrad",
    .doc = "dx = dy * scale where Selu's output >= 0, else dy * (output + scale * alpha).",
    .inputs = {"gradients: T", "outputs: T"},
    .gradient =
        [](Gradient& g) {
          g.dx(0) = op("SeluGrad", {g.dy(), g.x(1)});
          g.dx(1) = where_negative(g);
        },
    .examples = {{.inputs = {floats({2, 4}), floats({-1, 1})},
                  .outputs = {floats({1.5161987f, 4.2028039f})}}},
})};

const Op softplus_op{activation<Softplus>({
    .name = "Softplus",
    .doc = "y = log(exp(x) + 1), elementwise.",
    .gradient =
        [](Gradient& g) {
          g.dx() = op("SoftplusGrad", {g.dy(), g.x()});
        },
    .examples = {{.inputs = {floats({-1, 0, 100})},
                  .outputs = {floats({0.31326169f, 0.69314718f, 100})}}},
})};

const Op softplus_grad_op{activation_gradient<SoftplusGrad>({
    .name = "SoftplusGrad",
    .doc = "dx = dy / (exp(-x) + 1).",
    .gradient =
        [](Gradient& g) {
          const Output x = g.x(1);
          g.dx(0) = op("SoftplusGrad", {g.dy(), x});
          g.dx(1) = g.dy() * g.x(0) / ((exp(-x) + 2) + exp(x));
        },
    .examples = {{.inputs = {floats({4, 4}), floats({0, 100})}, .outputs = {floats({2, 4})}}},
})};

const Op softsign_op{activation<Softsign>({
    .name = "Softsign",
    .doc = "y = x / (|x| + 1), elementwise.",
    .gradient =
        [](Gradient& g) {
          g.dx() = op("SoftsignGrad", {g.dy(), g.x()});
        },
    .examples = {{.inputs = {floats({-1, 0, 3})}, .outputs = {floats({-0.5f, 0, 0.75f})}}},
})};

const Op softsign_grad_op{activation_gradient<SoftsignGrad>({
    .name = "SoftsignGrad",
    .doc = "dx = dy / (|x| + 1)².",
    .examples = {{.inputs = {floats({4, 4}), floats({0, -1})}, .outputs = {floats({4, 1})}}},
})};

}  // namespace
}  // namespace leat
