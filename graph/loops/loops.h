// While loops. A client writes one as a cycle in a frame: Enter brings a value in, Merge takes it,
// or what NextIteration has of the iteration before, LoopCond says whether there is another
// iteration, Switch passes a variable to the body or out through Exit (Yu et al., "Dynamic Control
// Flow in Large-Scale Machine Learning", EuroSys 2018). structure_loops(), in pipeline.h, makes
// each loop one node:
//
//   results = _Loop(variables, captured, references; condition, body, last)
//
// `condition` and `body` are GraphDefs of their own, whose `_Feed` nodes are called "variable:2" or
// "captured:0". So is `last`, rarely there: updates that run in every iteration and once more when
// there is no further one. From then on no graph has a cycle, and a loop is on one device, as its
// condition is, or the state that it changes. If that is on several, spread_loops() makes a `_Loop`
// on each.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "graph/graph.h"

namespace leat {

// A while loop's Merge has this attribute: what its second input is in the GraphDef
// ("body/NextIteration"). Graphs have no cycles, so that edge is not in the graph.
inline constexpr std::string_view back_edge_attr = "_leat_back_edge";

// The NextIteration of a loop's Merge; null for any other node. INVALID_ARGUMENT if it is not in
// the graph.
Node* next_iteration(const Node& merge);
// Enter, Exit, NextIteration, LoopCond and their kin for references: only structure_loops() knows
// them.
bool is_loop_node(const Node& node);

// Makes state that lives as long as the step and goes where its users are, such as a TensorArray.
bool makes_step_state(const Node& node);
// Has it, or its handle, as an input, directly or through the nodes of a loop.
bool uses_step_state(const Node& node);

// What a `_Loop` node computes in each iteration.
struct LoopParts {
  explicit LoopParts(const Node& loop);

  Graph condition, body, last;    // the last may be empty
  std::string predicate;          // of `condition`: "node:index", a scalar bool
  std::vector<std::string> next;  // of `body`, by variable: its value in the next iteration
};

// The `_Feed` nodes of both parts: variable or captured value, and its number.
struct LoopFeed {
  bool is_variable;
  int number;

  static LoopFeed parse(std::string_view name);
  std::string name() const;
};

}  // namespace leat
