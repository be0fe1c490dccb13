// For builders of state, which a program makes once, in whatever scope.
#pragma once

#include <vector>

#include "graph/graph.h"

namespace leat {

// While it lives, new nodes do not wait for the control scopes around it: state and its
// initialisers may also be made in a loop's body.
class OutsideControlScopes {
 public:
  explicit OutsideControlScopes(Graph& graph) : graph_(graph) {
    graph.scopes().control_inputs.swap(outer_);
  }
  ~OutsideControlScopes() { graph_.scopes().control_inputs.swap(outer_); }
  OutsideControlScopes(const OutsideControlScopes&) = delete;

 private:
  Graph& graph_;
  std::vector<Node*> outer_;
};

}  // namespace leat
