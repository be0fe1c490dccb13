// All that is known of a segment's values once its inputs have arrived: shapes, and the elements of
// all values that follow from shapes and constants.
#pragma once

#include <map>
#include <span>
#include <vector>

#include "core/byte_size.h"
#include "core/kernel.h"
#include "runtime/plan/program_plan.h"

namespace leat {

struct SegmentValue {
  DType dtype = DType::invalid;
  Shape shape;
  Tensor known;  // its elements (on the host), if known

  // Filled in when memory is planned.
  int root = -1;              // whose memory it lies in …
  size_t offset = 0;          // … this many bytes from its beginning
  int view_of_variable = -1;  // the node that first read a variable, if it is a view of one

  size_t bytes() const { return byte_size(dtype, shape); }
};

struct SegmentValues {
  std::vector<SegmentValue> inputs, variables;   // as in SegmentPlan
  std::vector<std::vector<SegmentValue>> nodes;  // by node, output
  std::vector<bool> is_folded;                   // all outputs of the node are known
  std::map<int, int> variable_index;             // of the plan → of the segment
  std::map<int, SegmentValue> constants;         // by number in the plan

  const SegmentValue& of(const SegmentSource& source) const;
  std::vector<TensorSpec> input_specs(const SegmentNode& node) const;
  std::vector<TensorSpec> output_specs(int node) const;
};

// Inputs give shapes, and elements where SegmentPlan::Input::is_by_value. Variables must be locked:
// where declared shapes are partial, their present shapes count. Shapes come from the functions
// that Graph::add runs; constants from the CPU kernels. Throws with the node's name.
SegmentValues infer_values(const ProgramPlan& program, const SegmentPlan& segment,
                           std::span<const Tensor* const> inputs);

}  // namespace leat
