// leat: cpu+cuda
// ApproximateEqual and NextAfter: floating-point numbers close to each other.
#include "kernels/elementwise.h"

namespace leat {
namespace {

struct ApproximateEqual {
  float tolerance;
  explicit ApproximateEqual(const NodeView& node) : tolerance(node.attr<float>("tolerance")) {}
  template <class T>
  LEAT_DEVICE bool operator()(T x, T y) const {
    return std::abs(x - y) <= static_cast<T>(tolerance);
  }
};

struct NextAfter {
  static constexpr int cost = 50;
  template <class T>
  LEAT_DEVICE T operator()(T x1, T x2) const {
    return std::nextafter(x1, x2);
  }
};

void infer_equal_shapes(ShapeContext& c) {
  const Shape &x = c.input(0), &y = c.input(1);
  check(x.is_compatible(y), "x and y must be of the same shape; x ", x, ", y ", y);
  c.set_output(0, x.merged(y));
}

const Op approximate_equal_op{{
    .name = "ApproximateEqual",
    .doc = "z = |x - y| <= tolerance, elementwise, without broadcasting.",
    .inputs = {"x: T", "y: T"},
    .outputs = {"z: bool"},
    .attrs = {"T: numbertype", "tolerance: float = 0.00001"},
    .shape = infer_equal_shapes,
    .kernels = elementwise<ApproximateEqual, Types<float, double>>(),
    .examples = {{.inputs = {floats({1, 2, 3}), floats({1.000001F, 2.1F, 3})},
                  .outputs = {bools({true, false, true})}}},
    .is_commutative = true,
    .is_not_differentiable = true,
}};

const Op next_after_op{{
    .name = "NextAfter",
    .doc = "output = the number next to x1 on the way to x2, with broadcasting.",
    .inputs = {"x1: T", "x2: T"},
    .outputs = {"output: T"},
    .attrs = {"T: {double, float} = float"},
    .shape = shapes::broadcast_binary(),
    .gradient = [](Gradient& g) { set_broadcast_gradients(g, g.dy(), zeros_like(g.dy())); },
    .kernels = elementwise<NextAfter, Types<float, double>>(),
    .examples = {{.inputs = {floats({1, 1, 1}), floats({2, 1, 0})},
                  .outputs = {floats({0x1.000002p0F, 1, 0x1.fffffep-1F})}}},
}};

}  // namespace
}  // namespace leat
