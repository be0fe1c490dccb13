// Which nodes may write to which variable, and which run only after them. For passes and the
// runtime, where the order of reads and writes matters.
//
// Covers references (VariableV2), which stand for their variable's memory. Resources are read by
// nodes of their own, which the client orders. Two callers count writers in their own way: the
// runtime counts every `_Loop`, whose parts have copies of the variable's node, and a while loop
// that is being cut out (loop_frame.h) counts every use of any state, resources and queues too.
#pragma once

#include <string_view>
#include <unordered_map>
#include <vector>

#include "graph/graph.h"

namespace leat {

// A snapshot of a graph whose nodes are in topological order.
class VariableAccesses {
 public:
  explicit VariableAccesses(const Graph& graph);

  // The id of the variable's node that a node's references stand for; -1 if its first output is no
  // reference.
  int variable_of(const Node& node) const { return variables_[node.id]; }
  // Nodes that take a reference to write to the variable, in the order of the graph.
  const std::vector<Node*>& writers(int variable) const;

 private:
  std::vector<int> variables_;  // by node id
  std::unordered_map<int, std::vector<Node*>> writers_;
};

// On an Identity that reads a variable before it is written: the fetches, "node:index", that take
// its value.
inline constexpr std::string_view early_fetches_attr = "_early_fetches";

// On a variable's node: an Assign in the session's graph may give it a value of another shape than
// declared (validate_shape = false), so values computed from it may have other shapes, too. prune()
// sets it, since that Assign need not be part of the step.
inline constexpr std::string_view any_shape_attr = "_any_shape";

// By node id: can it only run after one of `starts`? (These count themselves.)
std::vector<bool> followers(const Graph& graph, const std::vector<Node*>& starts);

// The reference whose memory a value is: the value itself, or the input of an Identity without
// control inputs. None if the value has memory of its own.
Output reference_behind(Output value);

}  // namespace leat
