#include "kernels/reduction.h"

#include "graph/ops.h"

namespace leat {

std::vector<bool> reduced_axes(const Tensor& indices, int rank) {
  std::vector<bool> out(rank, false);
  for (int64_t axis : to_int64s(indices)) {
    check(axis >= -rank && axis < rank, "reduction axis ", axis,
          " is out of range for an input of rank ", rank);
    const size_t at = static_cast<size_t>(axis < 0 ? axis + rank : axis);
    check(!out[at], "Invalid reduction arguments: Axes contains duplicate dimension: ", at);
    out[at] = true;
  }
  return out;
}

void infer_reduction(ShapeContext& c) {
  const Shape& input = c.input(0);
  const bool keep_dims = c.attr<bool>("keep_dims");
  const Tensor* indices = c.value(1);
  if (!input.has_rank()) return c.set_output(0, Shape::unknown());
  if (indices == nullptr)
    return c.set_output(0, keep_dims ? Shape::of_rank(input.rank()) : Shape::unknown());
  const std::vector<bool> reduced = reduced_axes(*indices, input.rank());
  Shape output;
  for (int axis = 0; axis < input.rank(); ++axis) {
    if (!reduced[axis]) {
      output.push_back(input[axis]);
    } else if (keep_dims) {
      output.push_back(1);
    }
  }
  c.set_output(0, output);
}

Output with_reduced_axes(Gradient& g, Output reduced) {
  if (g.attr<bool>("keep_dims")) return reduced;
  const Tensor indices = constant_value(g.x(1));
  if (!indices.is_valid() || !g.x(0).shape().has_rank()) {
    const Output kept =
        op(g.node().op->name, {g.x(0), g.x(1)}, {{"keep_dims", true}}, g.node().location);
    return reshape(reduced, shape_of(kept));
  }
  const std::vector<bool> axes = reduced_axes(indices, g.x(0).shape().rank());
  int leading = 0;  // broadcasting adds these by itself
  while (leading < static_cast<int>(axes.size()) && axes[leading]) ++leading;
  for (int axis = leading; axis < static_cast<int>(axes.size()); ++axis) {
    if (axes[axis]) reduced = expand_dims(reduced, axis - leading);
  }
  return reduced;
}

ReductionPlan plan_reduction(const KernelRequest& request) {
  const Shape& shape = request.inputs[0].shape;
  return plan_reduction(shape, reduced_axes(*request.inputs[1].value, shape.rank()));
}

ReductionPlan plan_reduction(const Shape& shape, const std::vector<bool>& reduced) {
  ReductionPlan plan;
  int64_t stride = shape.elements() == 0 ? 0 : shape.elements();
  for (int axis = 0, last = -1; axis < shape.rank(); ++axis) {
    const int64_t extent = shape[axis];
    (reduced[axis] ? plan.reduced : plan.outputs) *= extent;
    if (extent == 0) continue;
    stride /= extent;
    if (extent == 1) continue;
    int& rank = reduced[axis] ? plan.reduced_rank : plan.kept_rank;
    int64_t* extents = reduced[axis] ? plan.reduced_extents : plan.kept_extents;
    int64_t* strides = reduced[axis] ? plan.reduced_strides : plan.kept_strides;
    if (last == int{reduced[axis]}) {
      extents[rank - 1] *= extent;
      strides[rank - 1] = stride;
    } else {
      extents[rank] = extent;
      strides[rank] = stride;
      ++rank;
    }
    last = int{reduced[axis]};
  }
  return plan;
}

}  // namespace leat
