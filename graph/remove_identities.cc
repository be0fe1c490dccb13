#include <algorithm>

#include "graph/rebuild.h"
#include "graph/simplify.h"

namespace leat {
namespace {

bool is_identity(const Node& node) {
  return node.is("Identity") || node.is("StopGradient") || node.is("PreventGradient");
}

struct Uses {
  int data = 0;
  int control = 0;
};

// The Identity of a variable is a read, which has its time; the signal of an Identity behind a
// Switch is dead when the branch is not taken, while the Switch itself always runs.
bool can_go(const Node& node, const Uses& uses) {
  const Output& input = node.inputs[0];
  if (input.is_ref() || !node.control_inputs.empty()) return false;
  return uses.control == 0 || !is_control_flow(*input.node);
}

// A NoOp that gathers many signals for many, or on one device for another, saves edges.
bool is_needless_gathering(const Node& node, size_t signals, const Uses& uses) {
  if (signals <= 1) return true;
  return uses.control <= 1 && node.requested_device.is_empty() && node.assigned_device.is_empty();
}

// Whoever uses a value has waited for its producer. A Merge takes dead inputs, so there the signal
// says more.
void drop_redundant_signals(Node& node) {
  if (is_control_flow(node)) return;
  std::erase_if(node.control_inputs, [&](const Node* source) {
    return !is_control_flow(*source) &&
           std::any_of(node.inputs.begin(), node.inputs.end(), [&](const Output& input) {
             return input.node == source && !input.is_ref();
           });
  });
}

}  // namespace

Graph remove_identities(const Graph& graph, const KeptNames& kept) {
  std::vector<Uses> uses(graph.size());
  for (const auto& node : graph.nodes()) {
    for (const Output& input : node->inputs) ++uses[input.node->id].data;
    for (const Node* control : node->control_inputs) ++uses[control->id].control;
  }
  Rebuild rebuild(graph);
  for (const auto& owned : graph.nodes()) {
    const Node& node = *owned;
    if (!kept.contains(node)) {
      if (is_identity(node) && can_go(node, uses[node.id])) {
        const Output value = rebuild.map(node.inputs[0]);
        rebuild.replace(node, {value}, {value.node});
        continue;
      }
      if (node.is("NoOp")) {
        std::vector<Node*> signals = rebuild.control_inputs_of(node);
        if (is_needless_gathering(node, signals.size(), uses[node.id])) {
          rebuild.replace(node, {}, std::move(signals));
          continue;
        }
      }
    }
    drop_redundant_signals(rebuild.copy(node));
  }
  return std::move(rebuild).finish();
}

}  // namespace leat
