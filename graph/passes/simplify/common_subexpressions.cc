#include <absl/container/flat_hash_map.h>

#include <algorithm>
#include <functional>
#include <type_traits>
#include <utility>
#include <variant>

#include "graph/passes/simplify/simplify.h"

namespace leat {
namespace {

// a + b is b + a to the bit; sums of more terms depend on their order.
bool is_symmetric(const Node& node) { return node.op->is_commutative && node.inputs.size() == 2; }

size_t combine(size_t seed, size_t hash) {
  return seed ^ (hash + 0x9e3779b97f4a7c15u + (seed << 6) + (seed >> 2));
}

size_t hash_of(const std::string& text) { return std::hash<std::string>()(text); }

// What tells nodes of one op apart most often. Lists are left to the comparison.
size_t hash_of(const AttrValue& value) {
  return std::visit(
      [](const auto& held) -> size_t {
        using T = std::remove_cvref_t<decltype(held)>;
        if constexpr (std::is_same_v<T, DType>) {
          return static_cast<size_t>(held);
        } else if constexpr (std::is_arithmetic_v<T> || std::is_same_v<T, std::string>) {
          return std::hash<T>()(held);
        } else if constexpr (std::is_same_v<T, Shape>) {
          return hash_of(held.to_string());
        } else if constexpr (std::is_same_v<T, Tensor>) {
          return hash_of(held.to_string());  // the first elements, and how many there are
        } else if constexpr (std::is_same_v<T, FunctionRef>) {
          return hash_of(held.name);
        } else {
          return 0;
        }
      },
      value.variant());
}

size_t hash_of(const AttrMap& attrs) {
  size_t out = attrs.size();
  for (const auto& [name, value] : attrs) out = combine(out, hash_of(value));
  return out;
}

size_t hash_of(const Node& node) {
  size_t out = combine(std::hash<const void*>()(node.op), hash_of(node.attrs));
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
  return out;
}

bool has_same_inputs(const Node& a, const Node& b) {
  if (std::equal(a.inputs.begin(), a.inputs.end(), b.inputs.begin(), b.inputs.end(), same))
    return true;
  return is_symmetric(a) && same(a.inputs[0], b.inputs[1]) && same(a.inputs[1], b.inputs[0]);
}

// Once nodes have their devices, it does not matter which they asked for.
bool is_on_one_device(const Node& a, const Node& b) {
  return a.assigned_device == b.assigned_device &&
         (!a.assigned_device->is_empty() || a.requested_device == b.requested_device);
}

bool computes_the_same(const Node& a, const Node& b) {
  return a.op == b.op && a.inputs.size() == b.inputs.size() && has_same_inputs(a, b) &&
         a.control_inputs == b.control_inputs && is_on_one_device(a, b) && a.attrs == b.attrs;
}

}  // namespace

void merge_common_subexpressions(Graph& graph, const KeptNames& kept) {
  std::vector<Node*> same(graph.size());  // by id: the node that it is merged into; null: it stays
  absl::flat_hash_map<size_t, Node*> known;  // by hash: the last node that has it
  std::vector<Node*> before(graph.size());   // by id: the one before it that has the same
  known.reserve(graph.size());
  const auto follow = [&](Node& node) {
    for (Output& input : node.inputs) {
      if (Node* const other = same[input.node->id]; other != nullptr) input.node = other;
    }
    bool is_changed = false;
    for (Node*& control : node.control_inputs) {
      if (Node* const other = same[control->id]; other != nullptr)
        control = other, is_changed = true;
    }
    if (is_changed) sort_by_id(node.control_inputs);
  };
  for (const auto& owned : graph.nodes()) {
    Node& node = *owned;
    follow(node);
    if (!is_pure(node)) continue;
    Node*& last = known[hash_of(node)];
    Node* other = last;
    while (other != nullptr && !computes_the_same(*other, node)) other = before[other->id];
    if (other == nullptr) {
      before[node.id] = std::exchange(last, &node);
    } else if (!kept.contains(node)) {
      same[node.id] = other;
    }
  }
  std::vector<bool> stays(graph.size());
  for (size_t id = 0; id < same.size(); ++id) stays[id] = same[id] == nullptr;
  graph.keep(stays);
}

}  // namespace leat
