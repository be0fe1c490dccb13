// leat: cpu+cuda
// Floor, Ceil, Rint and Round.
#include "kernels/math/functors.h"

namespace leat {
namespace {

OpDef rounding(std::string name, std::string doc, std::string types, std::vector<Kernel> kernels,
               Tensor expected) {
  return unary({
      .name = std::move(name),
      .doc = std::move(doc),
      .attrs = {"T: {bfloat16, half, float, double" + types + "}"},
      .kernels = std::move(kernels),
      .examples = {{.inputs = {floats({-1.5, 2.5, 0.7f})}, .outputs = {std::move(expected)}}},
      .is_not_differentiable = true,
  });
}

const Op floor_op{rounding("Floor", "y = the largest integer that is at most x, elementwise.", "",
                           elementwise<Floor, FloatTypes>(), floats({-2, 2, 0}))};
const Op ceil_op{rounding("Ceil", "y = the smallest integer that is at least x, elementwise.", "",
                          elementwise<Ceil, FloatTypes>(), floats({-1, 3, 1}))};
const Op rint_op{rounding(
    "Rint",
    "y = the integer nearest to x, and the even one of two that are equally near; elementwise.", "",
    elementwise<Round, FloatTypes>(), floats({-2, 2, 1}))};
const Op round_op{rounding(
    "Round",
    "y = the integer nearest to x, and the even one of two that are equally near; elementwise.",
    ", int8, int16, int32, int64, complex64, complex128", elementwise<Round, SignedTypes>(),
    floats({-2, 2, 1}))};

}  // namespace
}  // namespace leat
