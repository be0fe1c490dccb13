// Which nodes may write to which variable, and what only runs after them: what the passes and the
// runtime ask of a graph where the order of reads and writes matters.
//
// Of references (VariableV2), which stand for their variable's memory. Resources are read by nodes
// of their own, which the client orders. Two answers differ and stay with those who ask: the
// runtime counts every `_Loop`, whose parts have copies of the variable's node, and a while loop
// that is being cut out (loop_frame.h) counts every use of any state, resources and queues too.
#pragma once

#include <string_view>
#include <unordered_map>
#include <vector>

#include "graph/graph.h"

namespace leat {

// Of a graph whose nodes stand in order, as they are now.
class VariableAccesses {
 public:
  explicit VariableAccesses(const Graph& graph);

  // The id of the variable's node that a node's references stand for; -1 if its first output is
  // none.
  int variable_of(const Node& node) const { return variables_[node.id]; }
  // Those that take a reference on the variable to write through, in the order of the graph.
  const std::vector<Node*>& writers(int variable) const;

 private:
  std::vector<int> variables_;  // by node id
  std::unordered_map<int, std::vector<Node*>> writers_;
};

// Of an Identity that reads a variable before it is written to: the fetches, "node:index", that
// have its value.
inline constexpr std::string_view early_fetches_attr = "_early_fetches";

// On a variable's node: somebody in the session's graph may give it a value of another shape than
// the declared one (validate_shape = false), so what is computed from it may have another shape,
// too. prune() sets it, since that Assign need not be part of the step.
inline constexpr std::string_view any_shape_attr = "_any_shape";

// By node id: can it only run after one of `starts`? (Which count themselves.)
std::vector<bool> followers(const Graph& graph, const std::vector<Node*>& starts);

// The reference whose memory a value is: the value itself, or what an Identity reads of it that
// nothing orders. None if the value is its own.
Output reference_behind(Output value);

}  // namespace leat
