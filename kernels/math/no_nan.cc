// leat: cpu+cuda
// Products and quotients that are 0 if a factor is 0, whatever the other one is: MulNoNan, Xdivy,
// Xlogy, Xlog1py.
#include "kernels/math/functors.h"

namespace leat {
namespace {

OpDef product(std::string name, std::string doc, std::string types, std::vector<Kernel> kernels,
              GradientFunction gradient, Tensor example) {
  return binary({
      .name = std::move(name),
      .doc = std::move(doc),
      .attrs = {"T: {" + types + ", complex64, complex128}"},
      .gradient = std::move(gradient),
      .kernels = std::move(kernels),
      .examples = {{.inputs = {floats({3, 0, 2}), floats({2, -1, 1})}, .outputs = {example}}},
  });
}

// 1 where x is not 0, else 0.
Output is_not_zero(Output x) { return cast(not_equal(x, 0), x.dtype()); }

const Op mul_no_nan_op{product(
    "MulNoNan", "z = x y with broadcasting, and 0 where y is 0, even if x is infinite or NaN.",
    "bfloat16, half, float, double", elementwise_with_complex<MulNoNan, FloatTypes>(),
    [](Gradient& g) {
      set_broadcast_gradients(g, op("MulNoNan", {g.dy(), g.x(1)}),
                              op("MulNoNan", {g.x(0), g.dy()}));
    },
    floats({6, 0, 2}))};

const Op xdivy_op{product(
    "Xdivy", "z = x / y with broadcasting, and 0 where x is 0.", "half, bfloat16, float, double",
    elementwise_with_complex<Xdivy, FloatTypes>(),
    [](Gradient& g) {
      const Output x = g.x(0), y = g.x(1);
      set_broadcast_gradients(g, g.dy() * op("Xdivy", {is_not_zero(x), y}),
                              g.dy() * op("Xdivy", {-x, square(y)}));
    },
    floats({1.5, 0, 2}))};

const Op xlogy_op{product(
    "Xlogy", "z = x ln y with broadcasting, and 0 where x is 0.", "half, bfloat16, float, double",
    elementwise_with_complex<Xlogy, FloatTypes>(),
    [](Gradient& g) {
      const Output x = g.x(0), y = g.x(1);
      set_broadcast_gradients(g, g.dy() * op("Xlogy", {is_not_zero(x), y}),
                              g.dy() * op("Xdivy", {x, y}));
    },
    floats({2.0794415f, 0, 0}))};

const Op xlog1py_op{product(
    "Xlog1py", "z = x ln(1 + y) with broadcasting, and 0 where x is 0.",
    "half, bfloat16, float, double", elementwise_with_complex<Xlog1py, FloatTypes>(),
    [](Gradient& g) {
      const Output x = g.x(0), y = g.x(1);
      set_broadcast_gradients(g, g.dy() * op("Xlog1py", {is_not_zero(x), y}),
                              g.dy() * op("Xdivy", {x, y + 1}));
    },
    floats({3.2958369f, 0, 1.3862944f}))};

}  // namespace
}  // namespace leat
