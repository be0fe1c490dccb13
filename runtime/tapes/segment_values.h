// All that is known of a segment's values once its inputs have arrived: shapes, and the elements of
// all values that follow from shapes and constants.
#pragma once

#include <span>
#include <utility>
#include <vector>

#include "core/byte_size.h"
#include "core/kernel.h"
#include "runtime/plan/program_plan.h"

namespace leat {

struct SegmentValue {
  SegmentValue(DType type, Shape extents, Tensor elements)
      : dtype(type),
        shape(std::move(extents)),
        known(std::move(elements)),
        bytes_(byte_size(dtype, shape)) {}

  DType dtype;
  Shape shape;
  Tensor known;  // its elements (on the host), if known

  // Filled in when memory is planned.
  int root = -1;              // whose memory it lies in …
  size_t offset = 0;          // … this many bytes from its beginning
  int view_of_variable = -1;  // the node that first read a variable, if it is a view of one

  size_t bytes() const { return bytes_; }

 private:
  size_t bytes_;
};

struct SegmentValues {
  std::vector<SegmentValue> inputs, variables, constants;  // as in SegmentPlan
  std::vector<SegmentValue> made;                          // the outputs of all nodes …
  std::vector<size_t> first_made;                          // … of which each node's begin here
  std::vector<bool> is_folded;                             // all outputs of the node are known

  std::span<SegmentValue> of_node(int n) {
    return {made.data() + first_made[n], first_made[n + 1] - first_made[n]};
  }
  std::span<const SegmentValue> of_node(int n) const {
    return {made.data() + first_made[n], first_made[n + 1] - first_made[n]};
  }
  const SegmentValue& of(const SegmentSource& source) const;
  void find_specs(const SegmentNode& node, std::vector<TensorSpec>& inputs) const;
  void find_output_specs(int node, std::vector<TensorSpec>& outputs) const;
};

// Inputs give shapes, and elements where SegmentPlan::Input::is_by_value. Variables must be locked:
// where declared shapes are partial, their present shapes count. Shapes come from the functions
// that Graph::add runs; constants from the CPU kernels. Throws with the node's name.
SegmentValues infer_values(const ProgramPlan& program, const SegmentPlan& segment,
                           std::span<const Tensor* const> inputs);

}  // namespace leat
