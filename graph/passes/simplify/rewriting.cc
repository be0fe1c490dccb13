#include "graph/passes/simplify/rewriting.h"

#include <absl/container/flat_hash_map.h>

#include <algorithm>

#include "graph/passes/placement_set.h"
#include "graph/rebuild.h"
#include "graph/signature.h"

namespace leat {

Rewriting::Rewriting(Graph& graph, const KeptNames& kept)
    : graph_(graph),
      kept_(kept),
      size_(graph.size()),
      uses_(graph.size()),
      passes_on_(graph.size()) {
  for (const auto& node : graph.nodes()) {
    count(*node, 1);
    for (const Node* control : node->control_inputs) uses_[control->id].is_awaited = true;
  }
}

Rewriting::Uses& Rewriting::uses_of(const Node& node) {
  if (uses_.size() <= static_cast<size_t>(node.id)) uses_.resize(node.id + 1);
  return uses_[node.id];
}

void Rewriting::count(const Node& node, int by) {
  for (const Output& input : node.inputs) uses_of(*input.node).data += by;
}

Node* Rewriting::behind(const Node& user, int input, std::string_view op) const {
  Node* const node = user.inputs[input].node;
  const bool fits = node->is(op) && node->control_inputs.empty() && is_pure(*node) &&
                    node->requested_device == user.requested_device;
  return fits ? node : nullptr;
}

bool Rewriting::has_one_use(const Node& node) const {
  if (kept_.contains(node) || static_cast<size_t>(node.id) >= uses_.size()) return false;
  const Uses& uses = uses_[node.id];
  return uses.data == 1 && !uses.is_awaited;
}

// A constant of a branch dies with the branch, which its control inputs say. Who no longer reads it
// still does.
void Rewriting::wait_for_dropped_constants(Node& node, const std::vector<Output>& inputs) {
  for (const Output& old : node.inputs) {
    const bool stays = std::ranges::any_of(inputs, [&](const Output& in) { return same(in, old); });
    if (stays || !old.node->is("Const")) continue;
    for (Node* control : old.node->control_inputs) {
      node.control_inputs.push_back(control);
      uses_of(*control).is_awaited = true;
    }
  }
  sort_by_id(node.control_inputs);
}

bool Rewriting::become(Node& node, std::string_view op, std::vector<Output> inputs, AttrMap attrs) {
  for (const auto& [key, attr] : node.attrs) {
    if (key.starts_with('_')) attrs.emplace(key, attr);
  }
  Node now;
  now.name = node.name;
  now.op = &op_named(op);
  now.inputs = std::move(inputs);
  now.attrs = std::move(attrs);
  try {
    resolve_signature(now);
  } catch (const Error&) {
    return false;  // not for this dtype
  }
  if ((kernel_types(node) & ~kernel_types(now)) != 0) return false;
  wait_for_dropped_constants(node, now.inputs);
  count(node, -1);
  node.op = now.op;
  node.inputs = std::move(now.inputs);
  node.attrs = std::move(now.attrs);
  count(node, 1);
  return true;
}

bool Rewriting::become_value(Node& node, Output value) {
  if (!become(node, "Identity", {value})) return false;
  if (static_cast<size_t>(node.id) < size_) passes_on_[node.id] = true;
  return true;
}

Output Rewriting::insert(const Node& user, std::string_view suffix, std::string_view op,
                         std::vector<Output> inputs, AttrMap attrs) {
  Node& node = graph_.insert({.op = std::string(op),
                              .name = graph_.unique_name(concat(user.name, "/", suffix)),
                              .inputs = std::move(inputs),
                              .attrs = std::move(attrs),
                              .location = user.location},
                             user.assigned_device);
  node.requested_device = user.requested_device;
  count(node, 1);
  inserted_[user.id].push_back(&node);
  return node.output();
}

Output Rewriting::insert_constant(const Node& user, std::string_view suffix, const Tensor& value,
                                  const Output& old) {
  const Output made =
      insert(user, suffix, "Const", {}, {{"dtype", value.dtype()}, {"value", value}});
  made.node->control_inputs = old.node->control_inputs;
  for (const Node* control : made.node->control_inputs) uses_of(*control).is_awaited = true;
  return made;
}

void Rewriting::follow(Node& node) {
  for (Output& input : node.inputs) {
    const Node& source = *input.node;
    if (static_cast<size_t>(source.id) >= size_ || !passes_on_[source.id] ||
        !source.control_inputs.empty() || source.requested_device != node.requested_device)
      continue;
    --uses_of(source).data;
    input = source.inputs[0];
    ++uses_of(*input.node).data;
  }
}

void Rewriting::finish() {
  if (inserted_.empty()) return;
  Rebuild rebuild(graph_);
  for (size_t id = 0; id < size_; ++id) {
    if (const auto before = inserted_.find(static_cast<int>(id)); before != inserted_.end()) {
      for (const Node* node : before->second) rebuild.copy(*node);
    }
    rebuild.copy(*graph_.nodes()[id]);
  }
  graph_ = std::move(rebuild).finish();
}

namespace {

RewriteRule find_rule(const OpDef& op) {
  for (const RewriteRules* rules : {&arithmetic_rules(), &movement_rules()}) {
    if (const auto found = rules->find(op.name); found != rules->end()) return found->second;
  }
  return nullptr;
}

}  // namespace

bool rewrite_arithmetic(Graph& graph, const KeptNames& kept) {
  Rewriting rewriting(graph, kept);
  absl::flat_hash_map<const OpDef*, RewriteRule> rules;
  const auto rule_of = [&](const Node& node) {
    const auto [known, is_new] = rules.try_emplace(node.op);
    if (is_new) known->second = find_rule(*node.op);
    return known->second;
  };
  bool has_changed = false;
  const size_t size = graph.size();  // what rules insert is as it should be
  for (size_t id = 0; id < size; ++id) {
    Node& node = *graph.nodes()[id];
    rewriting.follow(node);
    // What a node becomes may have a rule, too: Pow, Square, SquaredDifference.
    for (RewriteRule rule = rule_of(node); rule != nullptr; rule = rule_of(node)) {
      if (!is_pure(node) || !rule(rewriting, node)) break;
      has_changed = true;
    }
  }
  rewriting.finish();
  return has_changed;
}

}  // namespace leat
