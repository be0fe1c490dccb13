#include "graph/passes/dead_together.h"

#include <algorithm>
#include <iterator>

namespace leat {

DeadTogether::DeadTogether(const Graph& graph) : of_node_(graph.size()) {
  number_of({});
  for (const auto& node : graph.nodes()) of_node_[node->id] = set_of(*node);
}

int DeadTogether::set_of(const Node& node) {
  if (node.is("Merge") || node.is("RefMerge")) return number_of({-1 - node.id});
  int out = 0;
  for (const Output& input : node.inputs) out = both(out, set_of(input));
  for (const Node* control : node.control_inputs) out = both(out, of_node_[control->id]);
  return out;
}

// All that one predicate switches lives and dies together.
int DeadTogether::set_of(const Output& value) {
  const int set = of_node_[value.node->id];
  if (!value.node->is("Switch") && !value.node->is("RefSwitch")) return set;
  const Output& predicate = value.node->inputs[1];
  const int64_t number = (int64_t{predicate.node->id} << 16) + 2 * predicate.index + value.index;
  return both(set, number_of({number}));
}

int DeadTogether::both(int a, int b) {
  if (a == b || b == 0) return a;
  if (a == 0) return b;
  Set out;
  std::set_union(sets_[a].begin(), sets_[a].end(), sets_[b].begin(), sets_[b].end(),
                 std::back_inserter(out));
  return number_of(std::move(out));
}

int DeadTogether::number_of(Set set) {
  const auto [found, is_new] = numbers_.emplace(std::move(set), static_cast<int>(sets_.size()));
  if (is_new) sets_.push_back(found->first);
  return found->second;
}

}  // namespace leat
