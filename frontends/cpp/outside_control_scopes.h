// For builders of state: what a program makes once, in whatever scope it does so.
#pragma once

#include <vector>

#include "graph/graph.h"

namespace leat {

// What is made while it lives does not wait for the steps around it: state, and what initialises
// it, are also made in a loop's body.
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
