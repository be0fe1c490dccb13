// A gradient that only a group waits for, the shape of a tensor that a rewrite made known: what
// nobody reads is not computed. Those who waited for it wait for what it would have waited for.
#include <algorithm>

#include "graph/passes/simplify/simplify.h"
#include "graph/signature.h"

namespace leat {
namespace {

bool is_of_branch(const Output& input) { return is_control_flow(*input.node); }

// Takes variables by their values alone, as a product does. An Identity of a variable is a read,
// which may fail and has its time.
bool has_no_effect(const Node& node) {
  if (is_pure(node)) return true;
  if (node.op->is_stateful || node.op->name.starts_with('_') || is_control_flow(node) ||
      node.inputs.empty() || node.outputs.empty() || node.is("Identity"))
    return false;
  for (const OutputSpec& output : node.outputs)
    if (output.is_handle() || output.dtype == DType::variant) return false;
  for (const ArgRange& range : arg_ranges(node.op->schema.inputs, node.attrs)) {
    for (int i = range.begin; i < range.end; ++i)
      if (range.arg->is_ref || node.inputs[i].dtype() == DType::resource) return false;
  }
  return true;
}

// EnsureShape is there for its error. Of what reads several branches, one signal would not do.
bool can_stop(const Node& node) {
  return has_no_effect(node) && !node.is("EnsureShape") &&
         std::ranges::count_if(node.inputs, is_of_branch) <= 1;
}

// By id: is one of its values read by a node that has to run?
std::vector<bool> find_read(const Graph& graph, const KeptNames& kept) {
  std::vector<bool> is_read(graph.size());
  for (auto at = graph.nodes().rbegin(); at != graph.nodes().rend(); ++at) {
    const Node& node = **at;
    if (can_stop(node) && !is_read[node.id] && !kept.endpoints.contains(node.name)) continue;
    for (const Output& input : node.inputs) is_read[input.node->id] = true;
  }
  return is_read;
}

// The signal of a Switch says nothing of the branch taken, but that of a value of it does.
void become_signal_of_branch(Node& node, Output value) {
  node.op = &op_named("Identity");
  node.outputs = {value.node->outputs[value.index]};
  for (const Output& input : node.inputs) {
    if (!same(input, value)) node.control_inputs.push_back(input.node);
  }
  node.inputs = {value};
}

// A variable has nothing to wait for.
bool is_variable(const Output& input) { return input.is_ref() && input.node->inputs.empty(); }

void become_signal(Node& node) {
  node.op = &op_named("NoOp");
  node.outputs = {};
  for (const Output& input : node.inputs)
    if (!is_variable(input)) node.control_inputs.push_back(input.node);
  node.inputs.clear();
}

// Of a node that nobody reads.
void stop_computing(Node& node) {
  AttrMap attrs;
  for (const auto& [key, attr] : node.attrs) {
    if (key.starts_with('_')) attrs.emplace(key, attr);
  }
  const auto of_branch = std::ranges::find_if(node.inputs, is_of_branch);
  if (of_branch != node.inputs.end()) {
    const Output value = *of_branch;
    attrs.emplace("T", value.dtype());
    become_signal_of_branch(node, value);
  } else {
    become_signal(node);
  }
  node.attrs = std::move(attrs);
  sort_by_id(node.control_inputs);
}

}  // namespace

bool drop_unread(Graph& graph, const KeptNames& kept) {
  const std::vector<bool> is_read = find_read(graph, kept);
  std::vector<Node*> unread;
  for (const auto& node : graph.nodes()) {
    if (is_read[node->id] || kept.endpoints.contains(node->name) || !can_stop(*node)) continue;
    if (node->is("Identity") && is_of_branch(node->inputs[0])) continue;
    unread.push_back(node.get());
  }
  // Users first: they look at what their inputs give.
  for (size_t i = unread.size(); i-- > 0;) stop_computing(*unread[i]);
  return !unread.empty();
}

}  // namespace leat
