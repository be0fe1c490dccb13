// While loops. A client writes one as a cycle in a frame: Enter brings a value in, Merge takes it,
// or NextIteration's value from the previous iteration, LoopCond says whether there is another
// iteration, Switch passes a variable to the body or out through Exit (Yu et al., "Dynamic Control
// Flow in Large-Scale Machine Learning", EuroSys 2018). structure_loops(), in pipeline.h, makes
// each loop one node:
//
//   results = _Loop(variables, captured, references; condition, body, last)
//
// `condition` and `body` are GraphDefs of their own, whose `_Feed` nodes are called "variable:2" or
// "captured:0". So is `last`, which is rare: updates that run in every iteration and once more when
// the loop ends. After this pass no graph has a cycle. A loop is on one device, that of its
// condition or of the state that it changes; if this state is on several, spread_loops() makes a
// `_Loop` on each.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "graph/graph.h"

namespace leat {

// A while loop's Merge has this attribute: the name of its second input in the GraphDef
// ("body/NextIteration"). Graphs have no cycles, so that edge is not in the graph.
inline constexpr std::string_view back_edge_attr = "_leat_back_edge";

// The NextIteration of a loop's Merge; null for any other node. INVALID_ARGUMENT if it is not in
// the graph.
Node* next_iteration(const Node& merge);
// Enter, Exit, NextIteration, LoopCond and their kin for references: only structure_loops() knows
// them.
bool is_loop_node(const Node& node);

// Makes state that lives as long as the step and is placed with its users, such as a TensorArray.
bool makes_step_state(const Node& node);
// Has that state, or its handle, as an input, directly or through the nodes of a loop.
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
