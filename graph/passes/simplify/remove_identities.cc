#include <algorithm>
#include <functional>
#include <unordered_map>

#include "graph/passes/simplify/simplify.h"

namespace leat {
namespace {

bool is_identity(const Node& node) {
  return node.is("Identity") || node.is("StopGradient") || node.is("PreventGradient");
}

struct Uses {
  int data = 0;
  int control = 0;
  bool is_relayed = false;  // see is_relay_for()
};

// Whether the value comes from one device to another, where the user asked for it, and goes on to a
// third: all-reduces choose in this way who sends to whom. Without the node, the first would send
// to the third.
bool is_relay_for(const Node& user, const Node& node) {
  const DeviceName &here = *node.requested_device, &from = *node.inputs[0].node->requested_device,
                   &to = *user.requested_device;
  return !here.is_empty() && !from.is_compatible(here) && !to.is_compatible(here) &&
         !to.is_compatible(from);
}

// The Identity of a variable is a read, which has its time; the signal of an Identity behind a
// Switch is dead when the branch is not taken, while the Switch itself always runs.
bool can_go(const Node& node, const Uses& uses) {
  const Output& input = node.inputs[0];
  if (input.is_ref() || !node.control_inputs.empty() || uses.is_relayed) return false;
  return uses.control == 0 || !is_control_flow(*input.node);
}

// A NoOp that gathers many signals for many, or on one device for another, saves edges.
bool is_needless_gathering(const Node& node, size_t signals, const Uses& uses) {
  if (signals <= 1) return true;
  return uses.control <= 1 && node.requested_device->is_empty() && node.assigned_device->is_empty();
}

// Whoever uses a value has waited for its producer. A Merge takes dead inputs, so there the signal
// says more.
void drop_redundant_signals(Node& node) {
  if (node.control_inputs.empty() || is_control_flow(node)) return;
  std::vector<const Node*> sources;  // sorted: nodes may have very many of both
  for (const Output& input : node.inputs) {
    if (!input.is_ref()) sources.push_back(input.node);
  }
  std::sort(sources.begin(), sources.end(), std::less<>());
  std::erase_if(node.control_inputs, [&](const Node* source) {
    return !is_control_flow(*source) &&
           std::binary_search(sources.begin(), sources.end(), source, std::less<>());
  });
}

// What stands for a node that goes: its value, and those who tell that it has run.
struct Replacement {
  Output value;
  std::vector<Node*> signals;
};
using Replacements = std::unordered_map<int, Replacement>;  // by id

void follow_replacements(Node& node, const std::vector<bool>& stays, Replacements& replacements,
                         const std::vector<Uses>& uses) {
  for (Output& input : node.inputs) {
    if (!stays[input.node->id]) input = replacements.at(input.node->id).value;
  }
  std::vector<Node*>& controls = node.control_inputs;
  if (std::all_of(controls.begin(), controls.end(), [&](Node* from) { return stays[from->id]; }))
    return;
  const std::vector<Node*> before = std::move(controls);
  controls.clear();
  for (Node* from : before) {
    if (stays[from->id]) {
      controls.push_back(from);
      continue;
    }
    std::vector<Node*>& signals = replacements.at(from->id).signals;
    if (before.size() == 1 && uses[from->id].control == 1) {
      controls = std::move(signals);  // of a chain of NoOps behind many nodes, say
      return;
    }
    controls.insert(controls.end(), signals.begin(), signals.end());
  }
  sort_by_id(controls);
}

}  // namespace

void remove_identities(Graph& graph, const KeptNames& kept) {
  std::vector<Uses> uses(graph.size());
  for (const auto& node : graph.nodes()) {
    for (const Output& input : node->inputs) {
      Uses& of_input = uses[input.node->id];
      ++of_input.data;
      of_input.is_relayed |= is_identity(*input.node) && is_relay_for(*node, *input.node);
    }
    for (const Node* control : node->control_inputs) ++uses[control->id].control;
  }
  std::vector<bool> stays(graph.size(), true);
  Replacements replacements;
  for (const auto& owned : graph.nodes()) {
    Node& node = *owned;
    follow_replacements(node, stays, replacements, uses);
    if (!kept.contains(node)) {
      if (is_identity(node) && can_go(node, uses[node.id])) {
        const Output value = node.inputs[0];
        replacements.emplace(node.id, Replacement{value, {value.node}});
        stays[node.id] = false;
        continue;
      }
      if (node.is("NoOp") &&
          is_needless_gathering(node, node.control_inputs.size(), uses[node.id])) {
        replacements.emplace(node.id, Replacement{{}, std::move(node.control_inputs)});
        stays[node.id] = false;
        continue;
      }
    }
    drop_redundant_signals(node);
  }
  graph.keep(stays);
}

}  // namespace leat
