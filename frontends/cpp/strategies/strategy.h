// The interface of all strategies: one model function, one optimizer and one dataset become what
// this process does to train, whichever way.
//
//   const Cluster cluster = join_cluster();
//   const auto strategy = make_strategy("parameter_server:staleness=2", cluster);
//   const Dataset digits = datasets::mnist(directory).shuffle(10'000, 1).repeat().batch(100);
//   Graph g;
//   const Training training = strategy->minimize(g, Adam{1e-3}, digits, [](const Batch& batch) {
//     Output logits = nn::dense(nn::dense(batch[0], 128, {.activation = relu}), 10);
//     return Losses{.loss = mean(nn::softmax_cross_entropy(logits, batch[1]))};
//   });
//   TrainingSession session(training, {.hooks = {stop_at(1'000)}});
//   session.run();
#pragma once

#include <concepts>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "frontends/cpp/data/dataset.h"
#include "frontends/cpp/optimizers/optimizer.h"
#include "frontends/cpp/strategies/parts/replicas.h"
#include "frontends/cpp/training/training.h"

namespace leat {

// What a model function returns for a batch.
struct Losses {
  Output loss;  // a scalar: the mean over the batch
  // Scalars to show beside it, by name.
  std::vector<std::pair<std::string, Output>> metrics = {};
};

// The losses alone.
std::vector<Output> losses_of(const std::vector<Losses>& built);

// Builds the model for one batch. A strategy calls it as often as it has replicas in this program,
// each time under other scopes: the same calls make the same variables, their copies, or find those
// that are there. So it must make the same variables in the same order each time, and keep none.
// Returns Losses, or the loss alone.
class ModelFunction {
 public:
  template <class F>
  requires(std::is_invocable_v<F&, const Batch&> && !std::same_as<F, ModelFunction>)
      ModelFunction(F function) {  // NOLINT: converts
    using Result = std::invoke_result_t<F&, const Batch&>;
    constexpr bool is_loss = std::is_convertible_v<Result, Output>;
    static_assert(is_loss || std::is_convertible_v<Result, Losses>,
                  "a model function returns Losses{.loss = …, .metrics = …}, or the loss alone");
    if constexpr (is_loss) {
      function_ = [function = std::move(function)](const Batch& batch) mutable {
        return Losses{.loss = function(batch)};
      };
    } else {
      function_ = std::move(function);
    }
  }
  Losses operator()(const Batch& batch) const { return function_(batch); }

 private:
  std::function<Losses(const Batch&)> function_;
};

class Strategy {
 public:
  virtual ~Strategy() = default;

  // Adds to `graph` what this process does to train: a replica reads its own share of `data`
  // (Dataset::share). Variables without a prefix are the model: checkpoints have these, and
  // evaluate() reads them.
  virtual Training minimize(Graph& graph, const Optimizer& optimizer, const Dataset& data,
                            const ModelFunction& model, Location at = here()) const = 0;

  // The model once more, for a batch of other data, with the variables that minimize() has trained.
  // Call it after minimize().
  Losses evaluate(Graph& graph, const Batch& batch, const ModelFunction& model) const;

  const Replicas& replicas() const { return replicas_; }

  // For strategies: the next batch of replica k's share of the data, read on its worker. Adds it to
  // training.inputs and training.samples.
  Batch next_batch(Training& training, const Dataset& data, int k, Location at) const;

 protected:
  explicit Strategy(Replicas replicas) : replicas_(std::move(replicas)) {}

  // A Training of this program without a step yet. `drives_all`: the chief's program trains all
  // replicas, so those of the others have nothing to do.
  Training new_training(Graph& graph, bool drives_all) const;
  // The model for a batch, under the current scopes; for the next one of replica k's share.
  Losses build(const ModelFunction& model, const Batch& batch, Location at) const;
  Losses build(Training& training, const Dataset& data, const ModelFunction& model, int k,
               Location at) const;
  // The same for all replicas of this program, replica k under the scopes of
  // (replicas().*scope)(graph, k): first_or_copy(), first_or_sharing(). Makes the global step with
  // the first.
  std::vector<Losses> build_all(Training& training, const Dataset& data, const ModelFunction& model,
                                ReplicaScope (Replicas::*scope)(Graph&, int) const,
                                Location at) const;
  // Mean loss and metrics over the replicas, for the progress line.
  void set_shown(Training& training, const std::vector<Losses>& losses) const;

 private:
  Replicas replicas_;
};

// A strategy by name, with options: "local_sgd", "local_sgd:steps=10",
// "bmuf:steps=10:momentum=0.9". INVALID_ARGUMENT lists the names, or the options of that strategy.
std::unique_ptr<Strategy> make_strategy(std::string_view text, const StrategyCluster& cluster);

// What make_strategy() knows.
struct StrategyOption {
  std::string name, default_value, doc;
};
struct StrategyInfo {
  std::string name, doc;
  std::vector<StrategyOption> options;
};
const std::vector<StrategyInfo>& strategies();
// The same as text, for --help.
std::string strategies_help();

}  // namespace leat
