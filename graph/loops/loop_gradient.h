// The gradient of a while loop: a loop that goes through the iterations from the last to the first.
//
//   forward   (x, lists) = while condition(x):  (body(x), lists + what the gradient will need)
//   backward  (dx, dc)   = for each iteration, from the last one: what it needs off the lists,
//                          (dbody/dx · dx, dc + dbody/dc · dx)    c: what the body has from outside
//
// So the forward loop gets more variables: the lists and a counter. Yu et al., "Dynamic Control
// Flow in Large-Scale Machine Learning", EuroSys 2018, section 5.
#pragma once

#include <functional>
#include <utility>
#include <vector>

#include "graph/graph.h"
#include "graph/loops/frames.h"

namespace leat {

struct LoopGradientRequest {
  Graph& graph;
  int frame;                                    // of Frames(graph)
  std::vector<std::pair<Node*, Output>> exits;  // with the gradients that have arrived at them
  // Does a gradient of this value reach what the caller asks for?
  std::function<bool(Output)> is_affected;
};

struct LoopGradient {
  const Node* loop = nullptr;  // its LoopCond
  // Of values from outside that the loop begins with or that its body uses.
  std::vector<std::pair<Output, Output>> gradients;
  // Nodes added to the loop and to loops in it; part of the outer body if this loop is in one.
  std::vector<Node*> loop_nodes;
};

// INVALID_ARGUMENT if the gradient cannot be made: the body has a condition that cond() did not
// make, or the loop carries references.
LoopGradient loop_gradient(const LoopGradientRequest& request);

// Defined in gradient.cc: d(ys)/d(xs) · dys within the body of a loop; gradients end at the loop's
// variables. An entry is none where no gradient flows.
struct LoopBody {
  int frame;
  std::vector<Node*>& loop_nodes;  // receives the nodes added to loops in the body
};
std::vector<Output> gradients_in_body(const std::vector<Output>& ys, const std::vector<Output>& xs,
                                      const std::vector<Output>& dys, const LoopBody& body);

}  // namespace leat
