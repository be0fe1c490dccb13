// leat: cpu+cuda
// Maximum and Minimum of two tensors. NaN wins.
#include "kernels/math/functors.h"

namespace leat {
namespace {

// The gradient goes to the operand that was taken, to x where both are equal.
void gradient(Gradient& g, const Output& takes_x) {
  set_broadcast_gradients(g, where(takes_x, g.dy(), 0), where(takes_x, 0, g.dy()));
}

const Op maximum_op{binary({
    .name = "Maximum",
    .doc = "z = max(x, y) with broadcasting.",
    .attrs = {"T: {bfloat16, half, float, double, int8, uint8, int16, uint16, int32, uint32, "
              "int64, uint64}"},
    .gradient = [](Gradient& g) { gradient(g, greater_equal(g.x(0), g.x(1))); },
    .kernels = elementwise<Maximum>(),
    .examples = {{.inputs = {floats({1, 5}), Tensor::scalar(3.0f)}, .outputs = {floats({3, 5})}}},
})};

const Op minimum_op{binary({
    .name = "Minimum",
    .doc = "z = min(x, y) with broadcasting.",
    .attrs = {"T: {bfloat16, half, float, double, int8, uint8, int16, uint16, int32, uint32, "
              "int64, uint64}"},
    .gradient = [](Gradient& g) { gradient(g, less_equal(g.x(0), g.x(1))); },
    .kernels = elementwise<Minimum>(),
    .examples = {{.inputs = {floats({1, 5}), Tensor::scalar(3.0f)}, .outputs = {floats({1, 3})}}},
})};

}  // namespace
}  // namespace leat
