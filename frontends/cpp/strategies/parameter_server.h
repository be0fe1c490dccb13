// Parameter server: variables, their slots and updates live on ps tasks, forward and backward
// passes on workers. A graph transformation (device requests and a mean); the runtime does not know
// about it.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "frontends/cpp/optimizers/optimizers.h"
#include "frontends/cpp/strategies/parts/compress.h"
#include "frontends/cpp/strategies/parts/delays.h"
#include "frontends/cpp/strategies/strategy.h"

namespace leat {

struct ParameterServerOptions {
  // The job whose tasks have the variables. The workers' own: each has a part of the variables and
  // of their slots, which it sends to the others when a step begins, and applies its part of the
  // gradients: with staleness 0 that is ZeRO, at (N-1)/N · S bytes each way for each of N workers
  // and 1/N of the memory (Rajbhandari et al., SC 2020). A variable is in one part, unless
  // `sharding` cuts it.
  std::string ps_job = "ps";
  std::string worker_job = "worker";
  // How many steps the fastest worker may be ahead of the slowest.
  //   none: asynchronous. An update is applied as soon as its gradient arrives; nobody waits.
  //   0: synchronous. One update per step, with the mean of all workers' gradients.
  //   s > 0: stale synchronous parallel. As asynchronous, but a worker that has made c steps waits
  //     until all others have made c - s. What it reads has all updates of their first c - s steps,
  //     all of its own, and maybe newer ones. Ho et al., NIPS 2013.
  // Asynchronous and stale: k workers make k updates of the full rate in the time of one
  // synchronous step, so going there changes the effective rate, too.
  std::optional<int64_t> staleness = {};
  // Not with staleness 0: a gradient is dropped, and counted in the variable "dropped_gradients",
  // if the global step has grown by more than this since its weights were read. TensorFlow's
  // DropStaleGradientOptimizer.
  std::optional<int64_t> drop_stale = {};
  // What is done about gradients of weights that have changed since (delays.h); not with staleness
  // 0.
  DelayCorrection delay = {};
  Compression compression = {};  // of gradients on their way up (compress.h)
  ServerSharding sharding = {};  // which variable goes to which server, and which are cut
};

// Cost: 2S bytes per worker and step, S those of the variables that it reads (down) and of their
// gradients (up), in 2 trips.
//
// minimize(graph, …) does all of it; or by hand. Asynchronous, between-graph: every worker runs
// this program with its own index. Each builds one replica; variables have the same names, so they
// are shared.
//   const ParameterServer strategy(cluster);
//   const auto replica = strategy.replica(graph, task.index);
//   strategy.minimize(Adam{1e-3}, model(graph), {.global_step = step});
// Synchronous, in-graph: one program (the chief's) builds a replica per worker over shared
// variables; one update per step with the mean of all replicas' gradients.
//   const ParameterServer strategy(cluster);
//   for (int k = 0; k < strategy.workers(); ++k) {
//     const auto replica = strategy.replica(graph, k);
//     losses.push_back(loss_of(layers));  // objects of nn, made once
//   }
//   strategy.minimize(Adam{1e-3}, losses, {.global_step = step});
// Without a cluster all of it is in this process.
// Li et al., OSDI 2014; Abadi et al., OSDI 2016 §4.4.
class ParameterServer : public Strategy {
 public:
  using Options = ParameterServerOptions;
  // INVALID_ARGUMENT if the cluster lacks one of the jobs.
  explicit ParameterServer(const StrategyCluster& cluster, Options options = {});

  Training minimize(Graph& graph, const Optimizer& optimizer, const Dataset& data,
                    const ModelFunction& model, Location at = here()) const override;

  int workers() const { return replicas().count(); }

  // While it lives, new variables go to ps tasks as the option `sharding` says (programs that make
  // the same variables in the same order agree on it), other nodes to worker `index`.
  ReplicaScope replica(Graph& graph, int index) const;

  // Asynchronous: an update with this replica's gradient alone, as Optimizer::minimize makes it.
  Node& minimize(const Optimizer& optimizer, Output loss, const MinimizeOptions& options = {},
                 Location at = here()) const;
  // Synchronous: one update with the mean of the replicas' gradients, taken where the variable is;
  // a replica whose loss does not depend on a variable counts as 0. Gradients of rows cross to the
  // ps as rows. `losses` by replica, all of one graph. INVALID_ARGUMENT if they are not one per
  // worker.
  Node& minimize(const Optimizer& optimizer, const std::vector<Output>& losses,
                 const MinimizeOptions& options = {}, Location at = here()) const;

 private:
  Training synchronous(Graph& graph, const Optimizer& optimizer, const Dataset& data,
                       const ModelFunction& model, Location at) const;
  Training asynchronous(Graph& graph, const Optimizer& optimizer, const Dataset& data,
                        const ModelFunction& model, Location at) const;
  Training with_copies(Graph& graph, const Optimizer& optimizer, const Dataset& data,
                       const ModelFunction& model, Location at) const;

  // The update, if the gradients are not too late.
  Output update_in_time(const Optimizer& optimizer,
                        const std::vector<GradientAndVariable>& gradients, Output step,
                        Output step_of_weights, Location at) const;

  Options options_;
};

}  // namespace leat
