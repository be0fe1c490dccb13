#include "graph/rebuild.h"

#include <algorithm>

namespace leat {

Output Rebuild::map(Output old) const {
  const std::vector<Output>& outputs = outputs_[old.node->id];
  const bool is_known =
      old.index < static_cast<int>(outputs.size()) && static_cast<bool>(outputs[old.index]);
  if (!is_known) {
    fail(Code::internal, "'", old.name(), "' was left out of the new graph but is still used");
  }
  return outputs[old.index];
}

std::vector<Output> Rebuild::inputs_of(const Node& old) const {
  std::vector<Output> out;
  out.reserve(old.inputs.size());
  for (const Output& input : old.inputs) out.push_back(map(input));
  return out;
}

std::vector<Node*> Rebuild::control_inputs_of(const Node& old) const {
  std::vector<Node*> out;
  for (const Node* control : old.control_inputs) {
    const std::vector<Node*>& signals = signals_[control->id];
    out.insert(out.end(), signals.begin(), signals.end());
  }
  const auto by_id = [](const Node* a, const Node* b) { return a->id < b->id; };
  std::sort(out.begin(), out.end(), by_id);
  out.erase(std::unique(out.begin(), out.end()), out.end());
  return out;
}

Node& Rebuild::copy(const Node& old) {
  Node& node = graph_.copy(old, inputs_of(old), control_inputs_of(old));
  std::vector<Output> outputs;
  for (int i = 0; i < node.num_outputs(); ++i) outputs.push_back(node.output(i));
  replace(old, std::move(outputs), {&node});
  return node;
}

void Rebuild::replace(const Node& old, std::vector<Output> outputs, std::vector<Node*> signals) {
  outputs_[old.id] = std::move(outputs);
  signals_[old.id] = std::move(signals);
}

}  // namespace leat
