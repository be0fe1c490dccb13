#include <algorithm>
#include <unordered_map>

#include "graph/rebuild.h"
#include "graph/simplify.h"

namespace leat {
namespace {

// a + b is b + a to the bit; sums of more terms depend on their order.
bool is_symmetric(const Node& node) { return node.op->is_commutative && node.inputs.size() == 2; }

size_t combine(size_t seed, size_t hash) {
  return seed ^ (hash + 0x9e3779b97f4a7c15u + (seed << 6) + (seed >> 2));
}

// Attributes are left to the comparison, but for the value by which constants differ.
size_t hash_of(const Node& node) {
  size_t out = std::hash<const void*>()(node.op);
  size_t sum = 0;
  for (const Output& input : node.inputs) {
    const size_t hash = combine(std::hash<const void*>()(input.node), input.index);
    sum += hash;
    if (!is_symmetric(node)) out = combine(out, hash);
  }
  out = combine(out, sum);
  for (const Node* control : node.control_inputs) {
    out = combine(out, std::hash<const void*>()(control));
  }
  if (node.is("Const")) {
    out = combine(out, std::hash<std::string>()(node.attr<Tensor>("value").to_string()));
  }
  return out;
}

bool has_same_inputs(const Node& a, const Node& b) {
  if (a.inputs == b.inputs) return true;
  return is_symmetric(a) && a.inputs[0] == b.inputs[1] && a.inputs[1] == b.inputs[0];
}

bool computes_the_same(const Node& a, const Node& b) {
  return a.op == b.op && a.inputs.size() == b.inputs.size() && has_same_inputs(a, b) &&
         a.control_inputs == b.control_inputs && a.requested_device == b.requested_device &&
         a.assigned_device == b.assigned_device && a.attrs == b.attrs;
}

}  // namespace

Graph merge_common_subexpressions(const Graph& graph, const KeptNames& kept) {
  Rebuild rebuild(graph);
  std::unordered_multimap<size_t, Node*> known;  // nodes of the new graph
  for (const auto& owned : graph.nodes()) {
    const Node& node = *owned;
    if (!is_pure(node)) {
      rebuild.copy(node);
      continue;
    }
    Node probe = node;  // as it would be in the new graph
    probe.inputs = rebuild.inputs_of(node);
    probe.control_inputs = rebuild.control_inputs_of(node);
    const size_t hash = hash_of(probe);
    const auto [begin, end] = known.equal_range(hash);
    const auto same = std::find_if(
        begin, end, [&](const auto& entry) { return computes_the_same(*entry.second, probe); });
    if (same == end || kept.contains(node)) {
      known.emplace(hash, &rebuild.copy(node));
      continue;
    }
    std::vector<Output> outputs;
    for (int i = 0; i < node.num_outputs(); ++i) outputs.push_back(same->second->output(i));
    rebuild.replace(node, std::move(outputs), {same->second});
  }
  return std::move(rebuild).finish();
}

}  // namespace leat
