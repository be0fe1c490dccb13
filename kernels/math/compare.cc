// leat: cpu+cuda
// Comparisons: bool results.
#include <algorithm>

#include "kernels/math/functors.h"

namespace leat {
namespace {

// The result of Equal and NotEqual for incompatible shapes, if these are not an error.
template <bool Value>
struct Always {
  template <class T>
  LEAT_DEVICE bool operator()(const T&) const {
    return Value;
  }
};

bool can_broadcast(const Shape& x, const Shape& y) {
  for (int back = 1; back <= std::min(x.rank(), y.rank()); ++back) {
    const int64_t a = x[x.rank() - back];
    const int64_t b = y[y.rank() - back];
    if (a != b && a != 1 && b != 1) return false;
  }
  return true;
}

void infer_equality(ShapeContext& c) {
  const Shape& x = c.input(0);
  const Shape& y = c.input(1);
  if (c.attr<bool>("incompatible_shape_error")) return shapes::broadcast_binary()(c);
  if (!x.is_complete() || !y.is_complete()) return c.set_output(0, Shape::unknown());
  c.set_output(0, can_broadcast(x, y) ? broadcast(x, y) : Shape{});
}

// `kernels` compare; incompatible shapes give a single `otherwise` instead.
template <class Otherwise>
std::vector<Kernel> or_scalar(std::vector<Kernel> kernels) {
  for (Kernel& kernel : kernels) {
    kernel.prepare = [compare = kernel.prepare](const KernelRequest& request) {
      if (can_broadcast(request.inputs[0].shape, request.inputs[1].shape)) return compare(request);
      BroadcastPlan one;
      one.elements = one.extents[0] = 1;
      return bind_elementwise<Otherwise, bool, uint8_t>({}, one);
    };
  }
  return kernels;
}

OpDef equality(std::string name, std::string doc, std::vector<Kernel> kernels) {
  return {
      .name = std::move(name),
      .doc = std::move(doc),
      .inputs = {"x: T", "y: T"},
      .outputs = {"z: bool"},
      .attrs = {"T: type", "incompatible_shape_error: bool = true"},
      .shape = infer_equality,
      .kernels = std::move(kernels),
      .is_commutative = true,
      .is_not_differentiable = true,
  };
}

OpDef comparison(std::string name, std::string doc, std::vector<Kernel> kernels) {
  return {
      .name = std::move(name),
      .doc = std::move(doc),
      .inputs = {"x: T", "y: T"},
      .outputs = {"z: bool"},
      .attrs = {"T: realnumbertype"},
      .shape = shapes::broadcast_binary(),
      .kernels = std::move(kernels),
      .is_not_differentiable = true,
  };
}

OpDef with_example(OpDef op, Tensor expected) {
  op.examples = {
      {.inputs = {floats({1, 2, 3}), Tensor::scalar(2.0f)}, .outputs = {std::move(expected)}}};
  return op;
}

const Op equal_op{with_example(
    equality("Equal", "z = x == y with broadcasting.",
             or_scalar<Always<false>>(join(elementwise_with_complex<Equal, NumberAndBoolTypes>(),
                                           string_elementwise<Equal>()))),
    bools({false, true, false}))};
const Op not_equal_op{with_example(
    equality("NotEqual", "z = x != y with broadcasting.",
             or_scalar<Always<true>>(join(elementwise_with_complex<NotEqual, NumberAndBoolTypes>(),
                                          string_elementwise<NotEqual>()))),
    bools({true, false, true}))};
const Op less_op{
    with_example(comparison("Less", "z = x < y with broadcasting.", elementwise<Less>()),
                 bools({true, false, false}))};
const Op less_equal_op{
    with_example(comparison("LessEqual", "z = x <= y with broadcasting.", elementwise<LessEqual>()),
                 bools({true, true, false}))};
const Op greater_op{
    with_example(comparison("Greater", "z = x > y with broadcasting.", elementwise<Greater>()),
                 bools({false, false, true}))};
const Op greater_equal_op{with_example(
    comparison("GreaterEqual", "z = x >= y with broadcasting.", elementwise<GreaterEqual>()),
    bools({false, true, true}))};

}  // namespace
}  // namespace leat
