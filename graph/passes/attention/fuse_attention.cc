// fuse_attention: attention on a GPU becomes one `_Attention` node, and its gradient one
// `_AttentionGrad`, so that no step keeps the scores of all pairs of queries and keys for its
// backward part (Dao, FlashAttention-2, arXiv:2307.08691). Before `fuse`, which would take the
// softmax.
#include <algorithm>
#include <map>
#include <set>
#include <string>

#include "graph/passes/attention/find_attention.h"
#include "graph/passes/device_kernels.h"
#include "graph/rebuild.h"

namespace leat {
namespace {

// The new graph, in the old order: the nodes come where the result was, and where the first product
// of the gradient was.
class Replacement {
 public:
  Replacement(Graph& graph, const KeptNames& kept, const std::vector<AttentionParts>& found)
      : graph_(graph), kept_(kept), rebuild_(graph), part_of_(graph.size()) {
    for (const AttentionParts& parts : found)
      for (const Node* node : parts.nodes) part_of_[node->id] = &parts;
  }

  void run() {
    for (const auto& node : graph_.nodes()) {
      const AttentionParts* const parts = part_of_[node->id];
      if (parts == nullptr) {
        rebuild_.copy(*node);
      } else if (node.get() == parts->result) {
        add_attention(*parts);
      } else if (const auto gradients = parts->gradients();
                 !gradients.empty() && node.get() == gradients[0]) {
        add_gradient(*parts, *node);
      }
    }
    graph_ = std::move(rebuild_).finish();
  }

 private:
  void add_attention(const AttentionParts& parts) {
    Node& old = *parts.result;
    Node& node = insert(old, "_Attention", old.name, {parts.q, parts.k, parts.v}, parts);
    rebuild_.replace(old, {node.output()}, {&node});
    statistics_of_[&parts] = node.output(1);
  }

  void add_gradient(const AttentionParts& parts, Node& first) {
    const std::vector<Node*> gradients = parts.gradients();
    const bool keeps_a_name = std::any_of(gradients.begin(), gradients.end(),
                                          [&](const Node* node) { return kept_.contains(*node); });
    const std::string name =
        keeps_a_name ? graph_.unique_name(std::as_const(first).name + "/attention") : first.name;
    Node& node =
        insert(first, "_AttentionGrad", name,
               {parts.q, parts.k, parts.v, parts.result->output(), {}, parts.doutput}, parts);
    int output = 0;
    for (Node* old : {parts.dq, parts.dk, parts.dv}) {
      if (old != nullptr) replace(*old, node.output(output));
      ++output;
    }
  }

  // A place for the statistics, an output of the new graph, is left empty.
  Node& insert(Node& old, std::string op, const std::string& name, std::vector<Output> inputs,
               const AttentionParts& parts) {
    const bool has_mask = bool{parts.mask};
    if (has_mask) inputs.push_back(parts.mask);
    std::vector<Output> mapped;
    for (const Output& input : inputs)
      mapped.push_back(input ? rebuild_.map(input) : statistics_of_.at(&parts));
    Node& node = rebuild_.graph().insert({.op = std::move(op),
                                          .name = name,
                                          .inputs = std::move(mapped),
                                          .attrs = {{"scale", parts.scale},
                                                    {"causal", parts.causal},
                                                    {"N", int64_t{has_mask ? 1 : 0}}},
                                          .location = old.location},
                                         old.assigned_device);
    node.requested_device = old.requested_device;
    node.placement_reason = old.placement_reason;
    return node;
  }

  // Users of the old node read `value` instead. If the step asks for the node by name, an Identity
  // of `value` gets the name.
  void replace(Node& old, Output value) {
    Node* node = value.node;
    if (kept_.contains(old)) {
      node = &rebuild_.graph().insert(
          {.op = "Identity", .name = old.name, .inputs = {value}, .location = old.location},
          old.assigned_device);
      node->requested_device = old.requested_device;
      node->placement_reason = old.placement_reason;
      value = node->output();
    }
    rebuild_.replace(old, {value}, {node});
  }

  Graph& graph_;
  const KeptNames& kept_;
  Rebuild rebuild_;
  std::vector<const AttentionParts*> part_of_;  // by old id
  std::map<const AttentionParts*, Output> statistics_of_;
};

}  // namespace

bool fuse_attention(Graph& graph, const StepSignature& signature,
                    const std::vector<DeviceSpec>& devices) {
  const std::set<std::string> gpus = gpus_with_kernels(devices, {"_Attention", "_AttentionGrad"});
  if (gpus.empty()) return false;
  const KeptNames kept(graph, signature);
  const Consumers consumers(graph);
  const DeadTogether together(graph);
  std::vector<AttentionParts> found;
  for (const auto& node : graph.nodes()) {
    if (!node->is("Softmax") || !gpus.contains(node->assigned_device->to_string())) continue;
    if (auto parts = find_attention(*node, consumers, kept, together))
      found.push_back(std::move(*parts));
  }
  if (found.empty()) return false;
  Replacement(graph, kept, found).run();
  remove_unused(graph, kept);  // the mask, if it is causal
  return true;
}

}  // namespace leat
