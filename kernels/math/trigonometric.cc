// leat: cpu+cuda
// leat: fast-math-loops
// Circular and hyperbolic functions and their inverses.
#include "kernels/math/functors.h"

namespace leat {
namespace {

// clang-format off
struct Tan   { static constexpr int cost = 20; static constexpr bool has_versions = false; template <class T> LEAT_DEVICE T operator()(T x) const { return std::tan(x); } };
struct Asin  { static constexpr int cost = 20; template <class T> LEAT_DEVICE T operator()(T x) const { return std::asin(x); } };
struct Acos  { static constexpr int cost = 20; template <class T> LEAT_DEVICE T operator()(T x) const { return std::acos(x); } };
struct Atan  { static constexpr int cost = 20; template <class T> LEAT_DEVICE T operator()(T x) const { return std::atan(x); } };
struct Sinh  { static constexpr int cost = 20; static constexpr bool has_versions = false; template <class T> LEAT_DEVICE T operator()(T x) const { return std::sinh(x); } };
struct Cosh  { static constexpr int cost = 20; static constexpr bool has_versions = false; template <class T> LEAT_DEVICE T operator()(T x) const { return std::cosh(x); } };
struct Asinh { static constexpr int cost = 30; static constexpr bool has_versions = false; template <class T> LEAT_DEVICE T operator()(T x) const { return std::asinh(x); } };
struct Acosh { static constexpr int cost = 30; static constexpr bool has_versions = false; template <class T> LEAT_DEVICE T operator()(T x) const { return std::acosh(x); } };
struct Atanh { static constexpr int cost = 30; static constexpr bool has_versions = false; template <class T> LEAT_DEVICE T operator()(T x) const { return std::atanh(x); } };
struct Atan2 { static constexpr int cost = 30; template <class T> LEAT_DEVICE T operator()(T y, T x) const { return std::atan2(y, x); } };
// clang-format on

template <class F>
OpDef function(std::string name, std::string doc, GradientFunction gradient, Example example) {
  return unary_with_complex<F>({
      .name = std::move(name),
      .doc = std::move(doc),
      .gradient = std::move(gradient),
      .examples = {std::move(example)},
  });
}

const Op sin_op{function<Sin>("Sin", "y = sin x, elementwise; x in radians.",
                              [](Gradient& g) { g.dx() = g.dy() * op("Cos", {g.x()}); },
                              {.inputs = {floats({0, 1})}, .outputs = {floats({0, 0.84147098f})}})};

const Op cos_op{function<Cos>("Cos", "y = cos x, elementwise; x in radians.",
                              [](Gradient& g) { g.dx() = -(g.dy() * op("Sin", {g.x()})); },
                              {.inputs = {floats({0, 1})}, .outputs = {floats({1, 0.54030231f})}})};

const Op tan_op{function<Tan>("Tan", "y = tan x, elementwise; x in radians.",
                              [](Gradient& g) { g.dx() = g.dy() / square(op("Cos", {g.x()})); },
                              {.inputs = {floats({0, 1})}, .outputs = {floats({0, 1.5574077f})}})};

const Op asin_op{
    function<Asin>("Asin", "sin y = x with y in [-π/2, π/2], elementwise.",
                   [](Gradient& g) { g.dx() = g.dy() / sqrt(1 - square(g.x())); },
                   {.inputs = {floats({0, 0.5})}, .outputs = {floats({0, 0.52359878f})}})};

const Op acos_op{
    function<Acos>("Acos", "cos y = x with y in [0, π], elementwise.",
                   [](Gradient& g) { g.dx() = -(g.dy() / sqrt(1 - square(g.x()))); },
                   {.inputs = {floats({1, 0.5})}, .outputs = {floats({0, 1.0471976f})}})};

const Op atan_op{
    function<Atan>("Atan", "tan y = x with y in (-π/2, π/2), elementwise.",
                   [](Gradient& g) { g.dx() = g.dy() / (1 + square(g.x())); },
                   {.inputs = {floats({0, 1})}, .outputs = {floats({0, 0.78539816f})}})};

const Op sinh_op{
    function<Sinh>("Sinh", "y = (exp(x) - exp(-x)) / 2, elementwise.",
                   [](Gradient& g) { g.dx() = g.dy() * op("Cosh", {g.x()}); },
                   {.inputs = {floats({0, 1})}, .outputs = {floats({0, 1.1752012f})}})};

const Op cosh_op{
    function<Cosh>("Cosh", "y = (exp(x) + exp(-x)) / 2, elementwise.",
                   [](Gradient& g) { g.dx() = g.dy() * op("Sinh", {g.x()}); },
                   {.inputs = {floats({0, 1})}, .outputs = {floats({1, 1.5430806f})}})};

const Op asinh_op{function<Asinh>(
    "Asinh", "sinh y = x, elementwise.", [](Gradient& g) { g.dx() = g.dy() / op("Cosh", {g.y()}); },
    {.inputs = {floats({0, 1})}, .outputs = {floats({0, 0.88137359f})}})};

const Op acosh_op{
    function<Acosh>("Acosh", "cosh y = x with y ≥ 0, elementwise.",
                    [](Gradient& g) { g.dx() = g.dy() / op("Sinh", {g.y()}); },
                    {.inputs = {floats({1, 2})}, .outputs = {floats({0, 1.3169579f})}})};

const Op atanh_op{function<Atanh>(
    "Atanh", "tanh y = x, elementwise.", [](Gradient& g) { g.dx() = g.dy() / (1 - square(g.x())); },
    {.inputs = {floats({0, 0.5})}, .outputs = {floats({0, 0.54930614f})}})};

const Op atan2_op{{
    .name = "Atan2",
    .doc = "z = the angle in [-π, π] of the point (x, y), with broadcasting.",
    .inputs = {"y: T", "x: T"},
    .outputs = {"z: T"},
    .attrs = {"T: {bfloat16, half, float, double}"},
    .shape = shapes::broadcast_binary(),
    .gradient =
        [](Gradient& g) {
          const Output y = g.x(0), x = g.x(1);
          const Output share = g.dy() / (square(x) + square(y));
          set_broadcast_gradients(g, x * share, -(y * share));
        },
    .kernels = elementwise<Atan2, FloatTypes>(),
    .examples = {{.inputs = {floats({0, 1, 1}), floats({1, 1, -1})},
                  .outputs = {floats({0, 0.78539816f, 2.3561945f})}}},
}};

}  // namespace
}  // namespace leat
