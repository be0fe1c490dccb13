// Synchronous training that does not wait for the slowest: the first n of N gradients of a step
// count, the rest is dropped.
#pragma once

#include <string>

#include "frontends/cpp/optimizers/optimizers.h"
#include "frontends/cpp/strategies/strategy.h"

namespace leat {

struct BackupWorkersOptions {
  std::string ps_job = "ps";
  std::string worker_job = "worker";
  // b: how many of the N workers a step does not wait for. A single worker has no backups.
  int64_t backup_workers = 1;
  ServerSharding sharding = {};
};

// Cost: 2S bytes per worker and step, S those of the variables; a worker whose gradient comes too
// late sends none.
//
// A step is one update with the mean of N - b gradients, all computed with the variables of that
// step. It has N - b tickets. A worker that has its gradient takes a ticket: one of its own step
// lets the whole gradient in, and the worker waits for the update; one of a later step goes back,
// and the worker drops its gradient, counts it in the variable "dropped_gradients" and begins anew
// with the present variables. So every variable gets the mean of the same replicas, which
// TensorFlow's SyncReplicasOptimizer does not promise. Between-graph: every worker runs its own
// program; the chief's also makes the updates, in a thread of its TrainingSession.
// Chen et al., "Revisiting distributed synchronous SGD", 2016.
class BackupWorkers : public Strategy {
 public:
  using Options = BackupWorkersOptions;
  // INVALID_ARGUMENT if no worker is left to wait for.
  explicit BackupWorkers(const StrategyCluster& cluster, Options options = {});

  Training minimize(Graph& graph, const Optimizer& optimizer, const Dataset& data,
                    const ModelFunction& model, Location at = here()) const override;

 private:
  Options options_;
};

}  // namespace leat
