// leat: cpu+cuda
// Relu and its gradient: the op to copy from (see kernels/README.md).
#include "kernels/neural/functors.h"

namespace leat {
namespace {

const Op relu_op{{
    .name = "Relu",
    .doc = "y = max(x, 0), elementwise.",
    .inputs = {"features: T"},
    .outputs = {"activations: T"},
    .attrs = {"T: realnumbertype"},
    .shape = shapes::same_as(0),
    .gradient = [](Gradient& g) { g.dx() = relu_grad(g.dy(), g.y()); },
    .kernels = elementwise<Relu>(),
    .examples = {{.inputs = {floats({-1, 0, 2})}, .outputs = {floats({0, 0, 2})}}},
}};

const Op relu_grad_op{{
    .name = "ReluGrad",
    .doc = "dx = dy where x > 0, else 0; x may be Relu's input or its output.",
    .inputs = {"gradients: T", "features: T"},
    .outputs = {"backprops: T"},
    .attrs = {"T: realnumbertype"},
    .shape = shapes::same_for_all(),
    .gradient = [](Gradient& g) { g.dx(0) = relu_grad(g.dy(), g.x(1)); },
    .kernels = elementwise<ReluGrad>(),
    .examples = {{.inputs = {floats({3, 4, 5}), floats({-1, 0, 2})},
                  .outputs = {floats({0, 0, 5})}}},
}};

}  // namespace
}  // namespace leat
