// A loop over the first axes of tensors: what map_fn, scan and rnn are made of.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "graph/graph.h"

namespace leat {

struct Traversal {
  struct Step {
    std::vector<Output> states;  // the next ones, as many as there are
    std::vector<Output> kept;    // of each iteration
  };
  std::string title;                 // of the caller, for messages: "scan 'scan' (model.cc:12)"
  std::vector<Output> x;             // at least one; the first extents are equal
  std::vector<Output> initial = {};  // states
  bool reverse = false;              // from the last element to the first
  bool is_x_flipped = false;         // x holds its elements from the last to the first
  Location at = here();

  // `f` gets the states and an element of each x. Gives the last states, and what was kept, stacked
  // in the order of x. Elements are taken off the end of lists, and results are put at the end of
  // others, so that no list is ever copied.
  Step run(const std::function<Step(const std::vector<Output>& states,
                                    const std::vector<Output>& elements)>& f) const;
};

}  // namespace leat
