#include "graph/variable_node.h"

#include <algorithm>

namespace leat {
namespace {

// The input that a node which is no variable gives on as this output, or reads it from.
Output source_of(const Output& output) {
  const Node& node = *output.node;
  if (output.is_ref()) {
    const auto ref = std::ranges::find_if(node.inputs, &Output::is_ref);
    return ref == node.inputs.end() ? Output{} : *ref;
  }
  const bool passes_handle = output.dtype() == DType::resource && node.is("Identity");
  return passes_handle || node.is("ReadVariableOp") ? node.inputs[0] : Output{};
}

}  // namespace

bool is_resource_variable(const OpDef& op) {
  return op.is_variable && op.schema.outputs[0].dtype == DType::resource;
}

Node* variable_node(const Output& output) {
  for (Output at = output; at; at = source_of(at)) {
    if (at.node->op->is_variable) return at.node;
  }
  return nullptr;
}

Output variable_handle(const Output& output) {
  Node* variable = variable_node(output);
  return variable != nullptr && is_resource_variable(*variable->op) ? variable->output() : output;
}

}  // namespace leat
