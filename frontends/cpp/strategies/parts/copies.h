// A model on the servers, and a copy of it on this program's worker: for strategies whose workers
// compute with variables of their own.
#pragma once

#include <vector>

#include "frontends/cpp/strategies/strategy.h"

namespace leat {

// Builds the model twice: with variables on the servers, which are "the model" that is saved and
// evaluated, and with copies of them on the worker. Both read one batch; what a step does not need
// does not run.
class CopiedModel {
 public:
  CopiedModel(const Strategy& strategy, Training& training, const Dataset& data,
              const ModelFunction& model, Location at);

  const Losses& losses() const { return losses_; }  // of the copy
  Output step() const { return step_; }             // global_step, on a server
  const std::vector<Output>& trainable() const { return trainable_; }
  std::vector<Output> trainable_copies() const { return copies_of(trainable_); }
  std::vector<Output> copies_of(const std::vector<Output>& variables) const;

  // Makes a copy of a variable of the servers, such as a slot of a trainable one, that fetch() also
  // sets. Returns the copy.
  Output fetch_also(Output variable, Location at);
  // A node that sets the copies of the trainable variables to what the servers have when `after` is
  // done.
  Node& fetch(const std::vector<Output>& after, Location at) const;
  // Nodes that set the model's other numbers, such as moving averages of its batches, to those of
  // the copy when `after` is done: of all workers, the last one wins.
  std::vector<Output> push_state(const std::vector<Output>& after, Location at) const;
  // An int64 variable "global_step" on the worker, a copy: for steps that cross no wire.
  Output own_step(Location at) const;

 private:
  Graph& graph_;
  const Replicas& replicas_;
  Output step_;
  Losses losses_;
  std::vector<Output> trainable_, state_, fetched_also_;
};

// Variables of floating-point numbers, except the first `from`: those of a model and, once an
// optimizer has been used, its slots.
std::vector<Output> float_variables(const Graph& graph, size_t from = 0);

}  // namespace leat
