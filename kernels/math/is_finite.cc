// leat: cpu+cuda
// IsFinite, IsInf and IsNan.
#include "kernels/math/functors.h"

namespace leat {
namespace {

OpDef test(std::string name, std::string doc, std::vector<Kernel> kernels, Tensor expected) {
  constexpr float infinity = std::numeric_limits<float>::infinity();
  constexpr float nan = std::numeric_limits<float>::quiet_NaN();
  return unary({
      .name = std::move(name),
      .doc = std::move(doc),
      .outputs = {"y: bool"},
      .attrs = {float_attr},
      .kernels = std::move(kernels),
      .examples = {{.inputs = {floats({1, infinity, -infinity, nan})},
                    .outputs = {std::move(expected)}}},
      .is_not_differentiable = true,
  });
}

const Op is_finite_op{test("IsFinite", "y = x is neither infinite nor NaN, elementwise.",
                           elementwise<IsFinite, FloatTypes>(),
                           bools({true, false, false, false}))};
const Op is_inf_op{test("IsInf", "y = x is ∞ or -∞, elementwise.", elementwise<IsInf, FloatTypes>(),
                        bools({false, true, true, false}))};
const Op is_nan_op{test("IsNan", "y = x is not a number, elementwise.",
                        elementwise<IsNan, FloatTypes>(), bools({false, false, false, true}))};

}  // namespace
}  // namespace leat
