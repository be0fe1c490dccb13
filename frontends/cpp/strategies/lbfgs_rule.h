// What lbfgs does with an evaluation, however the gradient has been added up. Not for programs.
#pragma once

#include <utility>
#include <vector>

#include "frontends/cpp/strategies/lbfgs.h"

namespace leat::lbfgs {

struct Evaluation {
  Output loss;  // the mean over all batches, f64
  std::vector<std::pair<Output, Output>> gradients =
      {};       // trainable variables and the mean of each
  DType dtype;  // of a batch's loss: how much rounding there is
};

// Nodes that accept or reject the evaluation, go to the next point, and then count it in
// global_step; they do `updates`, too. Sets training.end.
std::vector<Output> accepted_or_not(Training& training, const Evaluation& evaluated,
                                    const LbfgsOptions& options, std::vector<Output> updates,
                                    Location at);

// Also one of rows, where the current scopes are.
Output dense_gradient(const GradientAndVariable& of_batch, Location at);

}  // namespace leat::lbfgs
