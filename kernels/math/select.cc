// leat: cpu+cuda
// Select and SelectV2: choose one of two values by a condition.
#include "kernels/math/functors.h"
#include "kernels/moves/moved_elements.h"

namespace leat {
namespace {

// Select's condition, if it is a vector, goes with the first axis: as [n, 1, 1, …] it broadcasts.
Shape condition_shape(const Shape& condition, const Shape& value) {
  if (condition.rank() != 1 || value.rank() <= 1) return condition;
  Shape out = condition;
  while (out.rank() < value.rank()) out.push_back(1);
  return out;
}

void infer_select(ShapeContext& c) {
  const Shape value = c.input(1).merged(c.input(2));
  const Shape& condition = c.input(0);
  if (condition.has_rank() && value.has_rank() && condition.rank() > 0) {
    const bool fits = condition.rank() == 1 && value.rank() > 1
                          ? condition[0] == any || value[0] == any || condition[0] == value[0]
                          : condition.is_compatible(value);
    check(fits,
          "condition must be a scalar, a vector for the first axis, or have the shape of t; "
          "condition ",
          condition, ", t and e ", value);
  }
  c.set_output(0, value);
}

void infer_select_v2(ShapeContext& c) {
  c.set_output(0, broadcast(broadcast(c.input(0), c.input(1)), c.input(2)));
}

// Elements only move: one instance per size.
template <class Bind>
BoundKernel visit_elements(DType dtype, Bind bind) {
  if constexpr (has_host_types) {
    return visit_moved(dtype, bind);
  } else {
    switch (dtype_size(dtype)) {
      case 1:
        return bind(TypeTag<uint8_t>{});
      case 2:
        return bind(TypeTag<uint16_t>{});
      case 4:
        return bind(TypeTag<uint32_t>{});
      default:
        return bind(TypeTag<uint64_t>{});
    }
  }
}

std::vector<Kernel> kernels() {
  Kernel kernel;
  kernel.device = kernel_device;
  kernel.types = {{"T", std::conditional_t<has_host_types, AllTypes, NumberAndBoolTypes>::list()}};
  kernel.prepare = [](const KernelRequest& request) {
    Shape condition = request.inputs[0].shape;
    if (request.node.op == "Select")
      condition = condition_shape(condition, request.outputs[0].shape);
    const Shape inputs[] = {condition, request.inputs[1].shape, request.inputs[2].shape};
    const BroadcastPlan plan = plan_broadcast(request.outputs[0].shape, inputs);
    BoundKernel kernel = visit_elements(request.outputs[0].dtype, [&]<class T>(TypeTag<T>) {
      return bind_elementwise<Choose, T, bool, T, T>({}, plan);
    });
    return share_where_equal(std::move(kernel), request);
  };
  return {kernel};
}

Output select_v1(const Output& condition, const Output& t, const Output& e) {
  return op("Select", {condition, t, e});
}

const Op select_op{{
    .name = "Select",
    .doc =
        "output = t where the condition holds, else e; a vector of conditions chooses whole rows.",
    .inputs = {"condition: bool", "t: T", "e: T"},
    .outputs = {"output: T"},
    .attrs = {"T: type"},
    .shape = infer_select,
    .gradient =
        [](Gradient& g) {
          const Output zeros = zeros_like(g.dy());
          g.dx(1) = select_v1(g.x(0), g.dy(), zeros);
          g.dx(2) = select_v1(g.x(0), zeros, g.dy());
        },
    .kernels = kernels(),
    .examples = {{.inputs = {bools({true, false}), floats({1, 2}), floats({3, 4})},
                  .outputs = {floats({1, 4})}},
                 {.inputs = {bools({true, false}), floats({2, 2}, {1, 2, 3, 4}),
                             floats({2, 2}, {5, 6, 7, 8})},
                  .outputs = {floats({2, 2}, {1, 2, 7, 8})}}},
}};

const Op select_v2_op{{
    .name = "SelectV2",
    .doc = "output = t where the condition holds, else e, all three with broadcasting.",
    .inputs = {"condition: bool", "t: T", "e: T"},
    .outputs = {"output: T"},
    .attrs = {"T: type"},
    .shape = infer_select_v2,
    .gradient =
        [](Gradient& g) {
          g.dx(1) = sum_to_shape_of(g.x(1), g.y(), where(g.x(0), g.dy(), 0));
          g.dx(2) = sum_to_shape_of(g.x(2), g.y(), where(g.x(0), 0, g.dy()));
        },
    .kernels = kernels(),
    .examples = {{.inputs = {bools({true, false}), floats({1, 2}), Tensor::scalar(9.0f)},
                  .outputs = {floats({1, 9})}}},
}};

}  // namespace
}  // namespace leat
