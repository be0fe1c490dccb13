#include "graph/passes/variable_accesses.h"

#include <algorithm>

#include "graph/signature.h"

namespace leat {

VariableAccesses::VariableAccesses(const Graph& graph) : variables_(graph.size(), -1) {
  for (const auto& node : graph.nodes()) {
    const auto ref = std::find_if(node->inputs.begin(), node->inputs.end(),
                                  [](const Output& input) { return input.is_ref(); });
    const bool has_ref = ref != node->inputs.end();
    if (node->num_outputs() > 0 && node->outputs[0].is_ref)
      variables_[node->id] = has_ref ? variables_[ref->node->id] : node->id;
    if (!has_ref || node->op->only_reads_state) continue;
    for (const ArgRange& range : arg_ranges(node->op->schema.inputs, node->attrs)) {
      for (int i = range.begin; i < range.end && range.arg->is_ref; ++i) {
        std::vector<Node*>& writers = writers_[variables_[node->inputs[i].node->id]];
        if (writers.empty() || writers.back() != node.get()) writers.push_back(node.get());
      }
    }
  }
}

const std::vector<Node*>& VariableAccesses::writers(int variable) const {
  static const std::vector<Node*> none;
  const auto found = writers_.find(variable);
  return found == writers_.end() ? none : found->second;
}

std::vector<bool> followers(const Graph& graph, const std::vector<Node*>& starts) {
  std::vector<bool> out(graph.size());
  for (const Node* start : starts) out[start->id] = true;
  for (const auto& node : graph.nodes()) {
    bool follows = out[node->id];
    for (const Output& input : node->inputs) follows = follows || out[input.node->id];
    for (const Node* source : node->control_inputs) follows = follows || out[source->id];
    out[node->id] = follows;
  }
  return out;
}

Output reference_behind(Output value) {
  while (!value.is_ref()) {
    if (!value.node->is("Identity") || !value.node->control_inputs.empty()) return {};
    value = value.node->inputs[0];
  }
  return value;
}

}  // namespace leat
