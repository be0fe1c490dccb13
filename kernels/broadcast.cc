#include "kernels/broadcast.h"

#include <vector>

namespace leat {

BroadcastPlan plan_broadcast(const Shape& output, std::span<const Shape> inputs) {
  BroadcastPlan plan;
  plan.elements = output.elements();
  const int num_inputs = static_cast<int>(inputs.size());

  // Innermost first while dimensions are merged; reversed at the end.
  BroadcastPlan reversed;
  int rank = 0;
  int64_t steps[BroadcastPlan::max_inputs] = {1, 1,
                                              1};  // elements of the input below this dimension
  for (int back = 1; back <= output.rank(); ++back) {
    const int64_t extent = output[output.rank() - back];
    int64_t strides[BroadcastPlan::max_inputs] = {};
    for (int i = 0; i < num_inputs; ++i) {
      const int axis = inputs[i].rank() - back;
      const int64_t own = axis >= 0 ? inputs[i][axis] : 1;
      check_internal(own == extent || own == 1, "shape ", inputs[i], " does not broadcast to ",
                     output);
      strides[i] = own == 1 ? 0 : steps[i];
      steps[i] *= own;
    }
    if (extent == 1) continue;
    bool merges = rank > 0;
    for (int i = 0; i < num_inputs && merges; ++i) {
      merges = strides[i] == reversed.strides[i][rank - 1] * reversed.extents[rank - 1];
    }
    if (merges) {
      reversed.extents[rank - 1] *= extent;
      continue;
    }
    reversed.extents[rank] = extent;
    for (int i = 0; i < num_inputs; ++i) reversed.strides[i][rank] = strides[i];
    ++rank;
  }

  if (rank == 0) {  // one element
    plan.extents[0] = plan.elements;
    return plan;
  }
  plan.rank = rank;
  for (int axis = 0; axis < rank; ++axis) {
    plan.extents[axis] = reversed.extents[rank - 1 - axis];
    for (int i = 0; i < num_inputs; ++i)
      plan.strides[i][axis] = reversed.strides[i][rank - 1 - axis];
  }
  return plan;
}

BroadcastPlan plan_broadcast(const KernelRequest& request) {
  std::vector<Shape> shapes;
  for (const TensorSpec& input : request.inputs) shapes.push_back(input.shape);
  return plan_broadcast(request.outputs[0].shape, shapes);
}

}  // namespace leat
