// Which steps of a forward part run again. Knows no graphs: only who makes and reads how many
// bytes.
#pragma once

#include <vector>

#include "graph/passes/recompute/recompute.h"

namespace leat {

// The forward part of a step on one device, in its order.
struct ForwardPart {
  // Memory that a step fills. Later steps may pass it on as it is (Reshape).
  struct Value {
    double bytes = 0;
    int maker = 0;
  };
  struct Input {
    int step;   // that gives it
    int value;  // that it gives
  };
  struct Step {
    std::vector<Input> inputs;
    std::vector<int> read;  // of the values that it gives: those that the backward part reads
    bool may_repeat = false;
    bool begins_layer = false;      // it reads a variable of two axes or more: weights
    bool follows_variable = false;  // it, or one before it, reads a variable
  };
  std::vector<Step> steps;
  std::vector<Value> values;
};

// The steps are cut into segments. The last is kept as it is, for the backward part begins there.
// The others run again, one after the other, from what is kept.
struct RecomputePlan {
  std::vector<int> segments;   // by step
  std::vector<bool> is_again;  // by step: runs again, in its segment
  double peak = 0;  // bytes of the forward part in memory at most, while the backward part runs
  double cost = 0;  // bytes that are computed again
};

// The plan without segments, if no other needs 5 % less memory.
//
// Recompute::layers cuts before steps that begin a layer, where few values that depend on variables
// are needed further on: so few as at √n places, for n layers (one in a perceptron, two where a
// residual goes past layers).
//
// Recompute::automatic follows Algorithm 3 of Chen et al.: it cuts where the bytes since the last
// cut would exceed a budget, and tries budgets. Unlike there, what has been kept so far counts,
// too, since it is in memory when the segment runs again; so segments become smaller towards the
// end. It cuts only where few bytes are needed further on, and tries several such limits. Of the
// plans that need at most 6 % of the whole more than the best, the cheapest is taken.
RecomputePlan plan_recompute(const ForwardPart& part, Recompute extent);

}  // namespace leat
