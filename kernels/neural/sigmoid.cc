// leat: cpu+cuda
// leat: fast-math-loops
// Sigmoid and Tanh, with the ops that TensorFlow has for their gradients.
#include "kernels/elementwise.h"

namespace leat {
namespace {

struct Sigmoid {
  static constexpr int cost = 6;
  template <class T>
  LEAT_DEVICE T operator()(T x) const {
    return T(1) / (T(1) + std::exp(-x));
  }
};

struct SigmoidGrad {
  template <class T>
  LEAT_DEVICE T operator()(T y, T dy) const {
    return dy * (y * (T(1) - y));  // as TensorFlow rounds it
  }
};

struct Tanh {
  static constexpr int cost = 5;
  template <class T>
  LEAT_DEVICE T operator()(T x) const {
    return std::tanh(x);
  }
};

struct TanhGrad {
  template <class T>
  LEAT_DEVICE T operator()(T y, T dy) const {
    return dy * (T(1) - y * y);
  }
};

const Op sigmoid_op{{
    .name = "Sigmoid",
    .doc = "y = 1 / (1 + e^-x), elementwise.",
    .inputs = {"x: T"},
    .outputs = {"y: T"},
    .attrs = {"T: {bfloat16, half, float, double, complex64, complex128}"},
    .shape = shapes::same_as(0),
    .gradient = [](Gradient& g) { g.dx() = sigmoid_grad(g.y(), g.dy()); },
    .kernels = elementwise_with_complex<Sigmoid, FloatTypes>(),
    .examples = {{.inputs = {floats({0, 2, -100})}, .outputs = {floats({0.5, 0.880797, 0})}}},
}};

const Op sigmoid_grad_op{{
    .name = "SigmoidGrad",
    .doc = "z = dy y (1 - y), the gradient of the sigmoid y.",
    .inputs = {"y: T", "dy: T"},
    .outputs = {"z: T"},
    .attrs = {"T: {bfloat16, half, float, double, complex64, complex128}"},
    .shape = shapes::same_for_all(),
    .gradient =
        [](Gradient& g) {
          g.dx(0) = (g.dy() * g.x(1)) * (1 - 2 * g.x(0));
          g.dx(1) = sigmoid_grad(g.x(0), g.dy());
        },
    .kernels = elementwise_with_complex<SigmoidGrad, FloatTypes>(),
    .examples = {{.inputs = {floats({0.5, 1}), floats({4, 4})}, .outputs = {floats({1, 0})}}},
}};

const Op tanh_op{{
    .name = "Tanh",
    .doc = "y = tanh x, elementwise.",
    .inputs = {"x: T"},
    .outputs = {"y: T"},
    .attrs = {"T: {bfloat16, half, float, double, complex64, complex128}"},
    .shape = shapes::same_as(0),
    .gradient = [](Gradient& g) { g.dx() = tanh_grad(g.y(), g.dy()); },
    .kernels = elementwise_with_complex<Tanh, FloatTypes>(),
    .examples = {{.inputs = {floats({0, 1})}, .outputs = {floats({0, 0.7615942})}}},
}};

const Op tanh_grad_op{{
    .name = "TanhGrad",
    .doc = "z = dy (1 - y²), the gradient of y = tanh x.",
    .inputs = {"y: T", "dy: T"},
    .outputs = {"z: T"},
    .attrs = {"T: {bfloat16, half, float, double, complex64, complex128}"},
    .shape = shapes::same_for_all(),
    .gradient =
        [](Gradient& g) {
          g.dx(0) = (-2 * g.dy()) * (g.x(0) * g.x(1));
          g.dx(1) = tanh_grad(g.x(0), g.dy());
        },
    .kernels = elementwise_with_complex<TanhGrad, FloatTypes>(),
    .examples = {{.inputs = {floats({0.5, 1}), floats({4, 4})}, .outputs = {floats({3, 0})}}},
}};

}  // namespace
}  // namespace leat
