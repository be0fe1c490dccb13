// simplify: saves work without changing results. Only speed shows that it ran.
#include "graph/passes/simplify/simplify.h"

#include <algorithm>
#include <array>

#include "graph/endpoint.h"
#include "graph/passes/colocation.h"

namespace leat {

KeptNames::KeptNames(const Graph& graph, const StepSignature& signature) {
  const StepSignature all = signature.normalised();
  for (const std::string& fetch : all.fetches) endpoints.emplace(node_of(fetch));
  endpoints.insert(all.targets.begin(), all.targets.end());
  for (const auto& node : graph.nodes()) {
    for (const std::string_view anchor : colocated_with(*node)) anchors.emplace(anchor);
  }
}

bool is_control_flow(const Node& node) {
  constexpr std::array<std::string_view, 12> names = {
      "Switch",         "RefSwitch", "Merge",         "RefMerge",         "Enter",
      "RefEnter",       "Exit",      "NextIteration", "RefNextIteration", "RefExit",
      "ControlTrigger", "LoopCond"};
  return std::find(names.begin(), names.end(), node.op->name) != names.end();
}

bool is_pure(const Node& node) {
  if (node.op->is_stateful || node.op->name.starts_with('_') || is_control_flow(node)) return false;
  if (node.outputs.empty()) return false;
  for (const OutputSpec& output : node.outputs) {
    if (output.is_ref || output.dtype == DType::resource || output.dtype == DType::variant) {
      return false;
    }
  }
  for (const Output& input : node.inputs) {
    if (input.is_handle()) return false;  // what it reads changes
  }
  return !node.inputs.empty() || node.is("Const");  // a Placeholder depends on the caller
}

void sort_by_id(std::vector<Node*>& nodes) {
  std::sort(nodes.begin(), nodes.end(), [](Node* a, Node* b) { return a->id < b->id; });
  nodes.erase(std::unique(nodes.begin(), nodes.end()), nodes.end());
}

void remove_unused(Graph& graph, const KeptNames& kept) {
  std::vector<bool> is_used(graph.size());
  for (auto node = graph.nodes().rbegin(); node != graph.nodes().rend(); ++node) {
    const Node& user = **node;
    if (kept.endpoints.contains(user.name)) is_used[user.id] = true;
    if (!is_used[user.id]) continue;
    for (const Output& input : user.inputs) is_used[input.node->id] = true;
    for (const Node* control : user.control_inputs) is_used[control->id] = true;
  }
  graph.keep(is_used);
}

void simplify(Graph& graph, const StepSignature& signature, Simplify extent) {
  if (extent == Simplify::nothing) return;
  const KeptNames kept(graph, signature);
  drop_needless_waits(graph);
  remove_identities(graph, kept);
  fold_constants(graph, kept);
  hoist_loop_invariants(graph);
  bool has_changed = false;
  if (extent == Simplify::all) has_changed = rewrite_arithmetic(graph, kept);
  merge_common_subexpressions(graph, kept);
  has_changed |= drop_unread(graph, kept);
  if (has_changed) remove_identities(graph, kept);
  remove_unused(graph, kept);
}

bool simplify_placed(Graph& graph, const StepSignature& signature) {
  // Nodes that asked for the same were merged before they had a device.
  const auto asks_as_the_first = [&](const auto& node) {
    return node->requested_device == graph.nodes().front()->requested_device;
  };
  if (std::ranges::all_of(graph.nodes(), asks_as_the_first)) return false;
  const size_t size = graph.size();
  merge_common_subexpressions(graph, KeptNames(graph, signature));
  return graph.size() != size;
}

}  // namespace leat
