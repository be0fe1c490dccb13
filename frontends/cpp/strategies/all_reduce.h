// All-reduce: every worker has its own copy of the variables, and all apply the same mean gradient.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "frontends/cpp/optimizers/optimizers.h"
#include "frontends/cpp/strategies/parts/compress.h"
#include "frontends/cpp/strategies/strategy.h"

namespace leat {

struct AllReduceOptions {
  std::string ps_job = "ps";  // for collectives::Algorithm::servers
  std::string worker_job = "worker";
  // Devices of this program's task to train on instead of the workers' tasks, {"GPU:0", "GPU:1"}:
  // tf.distribute's MirroredStrategy.
  std::vector<std::string> devices = {};
  // How, and in which buckets, gradients are exchanged (collectives.h): in the order in which
  // backward makes them (last layer first), so that sending begins before backward ends. As in
  // torch's DistributedDataParallel.
  collectives::Algorithm algorithm = collectives::Algorithm::automatic;
  int64_t bucket_bytes = 25 << 20;
  // αB, by which collectives::Algorithm::automatic chooses; none: measured once (link_speed.h).
  std::optional<int64_t> trip_bytes = {};
  // Of collectives::Algorithm::hierarchical; 0: the workers of a host are a group.
  int64_t workers_per_group = 0;
  bool overlap = true;    // see collectives.h
  bool priority = false;  // see collectives.h
  collectives::Reduction reduction = collectives::Reduction::mean;
  // Mini-batches whose gradients are added up on the worker before they are exchanged: 1/p of the
  // bytes, and one update with the mean of all. Horovod's backward_passes_per_step; with all
  // batches of an epoch it is full-batch gradient descent.
  int64_t backward_passes_per_step = 1;
  // Of the gradients that are exchanged (compress.h): casts go the way of `algorithm`, the others
  // go from each worker to all others. Not with adasum.
  Compression compression = {};
  // Horovod's join(): a worker whose data has ended contributes nothing, instead of ending the
  // training of all, until that of all has ended. Unlike in Horovod the mean is that of those which
  // contribute. A worker without data computes with its first batch in the meantime, so state that
  // it changes itself (moving averages) sees that batch again. Not with adasum, compression or
  // several backward passes, and the data must not repeat() without end.
  bool joins = false;
};

// Cost: 2(N-1)/N · S bytes sent by each of N workers per step, S those of the gradients, in 2
// trips; collectives.h has the formulas.
//
// Synchronous, in-graph: one program (the chief's) builds the model once for every worker, with the
// same names; one update per step with the mean of the replicas' gradients. minimize(graph, …) does
// all of it; or by hand:
//     const AllReduce strategy(cluster);
//     for (int k = 0; k < strategy.workers(); ++k) {
//       const auto replica = strategy.replica(graph, k);
//       losses.push_back(model(graph));  // variables and all, as for a single process
//     }
//     Node& train = strategy.minimize(Adam{1e-3}, losses, {.global_step = step});
// Variables of replica 0 and their slots have the same names as in a single process; a Saver saves
// these. Those of the others, "worker_1/…", are copies of them (variables.h): initialised from
// them, and made equal again when a checkpoint is restored. State that a replica changes itself,
// such as moving averages of its batches, stays its own; that of replica 0 is saved. global_step is
// one variable, made in replica 0. So there is no broadcast of first values to ask for, as
// Horovod's broadcast_parameters(), and no negotiation: all replicas are in one graph. `leat top`
// names the worker that a step waits for. The trace of a step (`mnist --trace`) is the timeline:
// _Send is what a worker takes to queue a bucket, _Recv lasts from the beginning of the wait for one
// to its arrival, AddN adds. Gradients of rows are made dense before they are
// exchanged. Sergeev and Del Balso, "Horovod", 2018; Li et al., "PyTorch Distributed", VLDB 2020.
class AllReduce : public Strategy {
 public:
  using Options = AllReduceOptions;
  // INVALID_ARGUMENT if the cluster lacks the job.
  explicit AllReduce(const StrategyCluster& cluster, Options options = {});

  Training minimize(Graph& graph, const Optimizer& optimizer, const Dataset& data,
                    const ModelFunction& model, Location at = here()) const override;

  int workers() const { return replicas().count(); }

  // While it lives, new nodes of the graph go to worker `index`, and variables are copies of
  // replica 0's unless `index` is 0. Build replica 0 first. A replica may be opened again, and
  // inside another one.
  ReplicaScope replica(Graph& graph, int index) const;

  // One update of all copies with the mean gradient; `losses` by replica. INVALID_ARGUMENT if they
  // are not one per worker, or if one depends on a variable and another does not depend on its
  // counterpart.
  Node& minimize(const Optimizer& optimizer, const std::vector<Output>& losses,
                 const MinimizeOptions& options = {}, Location at = here()) const;

 private:
  using Gradients = std::vector<GradientAndVariable>;  // of one replica
  std::vector<Gradients> gradients(const Optimizer& optimizer, const std::vector<Output>& losses,
                                   std::vector<Output> variables) const;
  collectives::AllReduceOptions exchange_options() const;
  // Nodes that a step must run, too, go to `updates`.
  void exchange(std::vector<Gradients>& all, std::vector<Output>& updates, Location at) const;
  Node& apply(Graph& graph, const Optimizer& optimizer, const std::vector<Gradients>& all,
              std::vector<Output> updates, Output global_step, Location at) const;
  Training joined(Training training, const Optimizer& optimizer, const Dataset& data,
                  const ModelFunction& model, Location at) const;
  Training accumulated(Training training, const Optimizer& optimizer, std::vector<Gradients> all,
                       Location at) const;

  Options options_;
};

}  // namespace leat
