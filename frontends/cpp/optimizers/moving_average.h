// Moving averages of variables, which often generalise better than the variables themselves (Polyak
// and Juditsky, SIAM J. Control Optim. 1992).
#pragma once

#include <map>
#include <string>
#include <vector>

#include "frontends/cpp/variables.h"

namespace leat {

// average = decay · average + (1 - decay) · variable. An average is a variable beside the one it
// follows, called "<w>/ExponentialMovingAverage" as in TensorFlow, and begins with that one's
// initial value; a Saver made later saves it, too.
class ExponentialMovingAverage {
 public:
  // With `num_updates` (a scalar of the graph, such as the global step) the decay is
  // min(decay, (1 + num_updates) / (10 + num_updates)): averages move faster at the beginning.
  explicit ExponentialMovingAverage(double decay, Output num_updates = {});

  // Makes the averages of `variables`, or of the collection "trainable_variables". The node updates
  // all of them: run it after a step, or in one, following `after` (the update of an optimizer).
  Node& apply(Graph& graph, std::vector<Output> variables = {}, Node* after = nullptr,
              Location at = here());
  // Of these variables, of which there must be one: ema.apply({w, b}).
  Node& apply(const std::vector<Output>& variables, Location at = here());
  // NOT_FOUND if apply() made no average of it.
  Output average(Output variable) const;
  // For a Saver that restores variables from their averages in a checkpoint, to evaluate or to
  // serve. All other variables of the graph have their own names.
  std::multimap<std::string, Output> variables_to_restore(const Graph& graph) const;
  // Sets variables to their averages, for evaluation. Their old values are lost unless a checkpoint
  // has them.
  Node& assign_averages(Location at = here()) const;

 private:
  struct Pair {
    Output variable, average;
  };
  double decay_;
  Output num_updates_;
  std::vector<Pair> averages_;
};

}  // namespace leat
