#include "graph/host_values.h"

#include <algorithm>
#include <string>

#include "graph/op_def.h"
#include "graph/signature.h"

namespace leat {

bool is_host_object(DType dtype) {
  return dtype == DType::string || dtype == DType::variant || dtype == DType::resource;
}

bool is_count(DType dtype, const Shape& shape) {
  if (dtype != i32 && dtype != i64 && dtype != DType::boolean) return false;
  if (!shape.has_rank() || shape.rank() == 0) return true;
  return shape.rank() == 1 && shape[0] != any && shape[0] <= Shape::max_rank;
}

bool is_for_host(const Node& node) {
  if (node.op->is_stateful || node.inputs.empty() || node.outputs.empty()) return false;
  const bool passes_on = node.is("Identity") || node.is("IdentityN") || node.is("StopGradient");
  const auto is_here = [&](const auto& value, DType dtype, const Shape& shape) {
    return !value.is_handle() && (is_count(dtype, shape) || (passes_on && dtype == DType::variant));
  };
  return std::all_of(
             node.inputs.begin(), node.inputs.end(),
             [&](const Output& input) { return is_here(input, input.dtype(), input.shape()); }) &&
         std::all_of(node.outputs.begin(), node.outputs.end(), [&](const OutputSpec& output) {
           return is_here(output, output.dtype, output.shape);
         });
}

bool takes_objects(const std::vector<TypeConstraint>& types, const Node& node) {
  const auto is_taken = [&](const ArgDef& arg, DType dtype) {
    const bool is_object = dtype == DType::string || dtype == DType::variant;
    if (!is_object || arg.dtype != DType::invalid) return true;
    return std::any_of(types.begin(), types.end(), [&](const TypeConstraint& constraint) {
      return constraint.attr == arg.type_attr &&
             std::find(constraint.allowed.begin(), constraint.allowed.end(), dtype) !=
                 constraint.allowed.end();
    });
  };
  for (const ArgRange& range : arg_ranges(node.op->schema.inputs, node.attrs)) {
    for (int i = range.begin; i < range.end; ++i) {
      if (!is_taken(*range.arg, node.inputs[static_cast<size_t>(i)].dtype())) return false;
    }
  }
  for (const ArgRange& range : arg_ranges(node.op->schema.outputs, node.attrs)) {
    for (int o = range.begin; o < range.end; ++o) {
      if (!is_taken(*range.arg, node.outputs[static_cast<size_t>(o)].dtype)) return false;
    }
  }
  return true;
}

std::vector<bool> loop_inputs_on_host(const Node& loop) {
  const auto& next = loop.attr<std::vector<std::string>>("next");
  std::vector<bool> out;
  for (const Output& input : loop.inputs)
    out.push_back(is_host_object(input.dtype()) || is_count(input.dtype(), input.shape()));
  // Variables that get the same value are in the same place.
  for (size_t v = 0; v < next.size() && v < out.size(); ++v) {
    for (size_t other = 0; other < next.size() && other < out.size(); ++other) {
      if (next[v] == next[other] && !out[other]) out[v] = false;
    }
  }
  return out;
}

}  // namespace leat
