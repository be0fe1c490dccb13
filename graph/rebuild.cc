#include "graph/rebuild.h"

#include <algorithm>

namespace leat {

Output Rebuild::map(Output old) const {
  Output out;
  if (Node* const copy = copies_[old.node->id]; copy != nullptr) {
    out = {copy, old.index};
  } else if (const auto found = replacements_.find(old.node->id); found != replacements_.end()) {
    const std::vector<Output>& outputs = found->second.outputs;
    if (old.index < static_cast<int>(outputs.size())) out = outputs[old.index];
  }
  if (!out) {
    fail(Code::internal, "'", old.name(), "' was left out of the new graph but is still used");
  }
  return out;
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
    if (Node* const copy = copies_[control->id]; copy != nullptr) {
      out.push_back(copy);
    } else if (const auto found = replacements_.find(control->id); found != replacements_.end()) {
      const std::vector<Node*>& signals = found->second.signals;
      out.insert(out.end(), signals.begin(), signals.end());
    }
  }
  const auto by_id = [](const Node* a, const Node* b) { return a->id < b->id; };
  std::sort(out.begin(), out.end(), by_id);
  out.erase(std::unique(out.begin(), out.end()), out.end());
  return out;
}

Node& Rebuild::copy(const Node& old) { return copy(old, inputs_of(old)); }

Node& Rebuild::copy(const Node& old, std::vector<Output> inputs) {
  Node& node = graph_.copy(old, std::move(inputs), control_inputs_of(old));
  copies_[old.id] = &node;
  return node;
}

void Rebuild::replace(const Node& old, std::vector<Output> outputs, std::vector<Node*> signals) {
  copies_[old.id] = nullptr;
  replacements_.insert_or_assign(old.id, Replacement{std::move(outputs), std::move(signals)});
}

}  // namespace leat
