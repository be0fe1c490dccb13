#include "frontends/cpp/control_flow/node_copies.h"

#include <algorithm>

#include "graph/loops/conditions.h"
#include "graph/loops/loops.h"

namespace leat {

bool is_state(const Node& node) {
  return node.inputs.empty() && node.outputs.size() == 1 && node.outputs[0].is_handle();
}

std::vector<const Node*> needed_by(const std::vector<Output>& results, size_t first) {
  std::vector<const Node*> out, pending;
  std::vector<bool> seen;
  const auto need = [&](const Node* node) {
    if (node->id < static_cast<int>(first) || is_state(*node)) return;
    seen.resize(std::max(seen.size(), static_cast<size_t>(node->id) + 1));
    if (seen[static_cast<size_t>(node->id)]) return;
    seen[static_cast<size_t>(node->id)] = true;
    pending.push_back(node);
  };
  for (const Output& result : results) need(result.node);
  while (!pending.empty()) {
    const Node* node = pending.back();
    pending.pop_back();
    out.push_back(node);
    for (const Output& input : node->inputs) need(input.node);
    for (const Node* control : node->control_inputs) need(control);
    if (const Node* next = next_iteration(*node)) need(next);
  }
  std::sort(out.begin(), out.end(), [](const Node* a, const Node* b) { return a->id < b->id; });
  return out;
}

NodeCopies::NodeCopies(Graph& graph, const std::vector<const Node*>& nodes, Rename rename)
    : graph_(graph), rename_(std::move(rename)) {
  for (const Node* node : nodes) names_.insert(node->name);
}

void NodeCopies::replace(Output from, Output to) { replaced_[{from.node, from.index}] = to; }

Output NodeCopies::of(Output output) const {
  if (const auto found = replaced_.find({output.node, output.index}); found != replaced_.end())
    return found->second;
  return {of(output.node), output.index};
}

Node* NodeCopies::of(Node* node) const {
  if (const auto found = copies_.find(node); found != copies_.end()) return found->second;
  // A control edge from a node whose value is replaced.
  const auto found = replaced_.lower_bound({node, 0});
  return found != replaced_.end() && found->first.first == node ? found->second.node : node;
}

// Attributes that name other nodes, or the frame of a loop.
AttrMap NodeCopies::renamed(const AttrMap& attrs) const {
  AttrMap out = attrs;
  for (const std::string_view key : {back_edge_attr, pivot_attr}) {
    if (!attrs.contains(key)) continue;
    const std::string name = attrs.at(key).get<std::string>();
    if (names_.contains(name)) out.insert_or_assign(key, rename_(name));
  }
  if (attrs.contains("frame_name"))
    out.insert_or_assign("frame_name", rename_(attrs.at("frame_name").get<std::string>()));
  if (attrs.contains("_class")) {
    constexpr std::string_view prefix = "loc:@";
    auto classes = attrs.at("_class").get<std::vector<std::string>>();
    for (std::string& name : classes) {
      if (!name.starts_with(prefix)) continue;
      const std::string with = name.substr(prefix.size());
      if (names_.contains(with)) name = concat(prefix, rename_(with));
    }
    out.insert_or_assign("_class", std::move(classes));
  }
  return out;
}

Node& NodeCopies::copy(const Node& node, const std::vector<Node*>& after,
                       const DeviceName& device) {
  std::vector<Output> inputs;
  inputs.reserve(node.inputs.size());
  for (const Output& input : node.inputs) {
    inputs.push_back(of(input));
    check_internal(!same(inputs.back(), input) || !names_.contains(input.node->name), "the input '",
                   input.name(), "' of ", describe(node), " must be copied before it");
  }
  std::vector<Node*> controls = after;
  for (Node* control : node.control_inputs) {
    Node* const copied = of(control);
    if (std::find(controls.begin(), controls.end(), copied) == controls.end())
      controls.push_back(copied);
  }
  Node& copy = graph_.insert({.op = node.op->name,
                              .name = rename_(node.name),
                              .inputs = std::move(inputs),
                              .attrs = renamed(node.attrs),
                              .control_inputs = std::move(controls),
                              .location = node.location},
                             {});
  copy.requested_device = node.requested_device->with_defaults(device);
  copies_[&node] = &copy;
  return copy;
}

}  // namespace leat
