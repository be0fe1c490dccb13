// All-reduce: every worker has its own copy of the variables, and all apply the same mean gradient.
// A graph transformation of existing ops (Split, AddN, Concat and device requests); the runtime
// does not know about it, and no ps job is needed.
//
// Cost of a step for N workers and S bytes of gradients, with α the time of a trip and B the
// bandwidth of a worker:
//   reduce-scatter and all-gather: worker k sums chunk k of N (it receives N - 1 chunks and sends
//     N - 1), then sends its sum to all others. 2(N-1)/N · S bytes sent by each worker, which is
//     the least there can be, in 2 trips: 2α + 2(N-1)/N · S/B. A ring sends as many bytes in 2(N-1)
//     trips. Patarasu and Yuan, J. Parallel Distrib. Comput. 69 (2009) 117-124.
//   direct exchange: every worker sends all to all and sums for itself. (N-1) · S bytes, 1 trip:
//     α + (N-1) · S/B. Chosen where (N-1)(N-2)/N · S <= αB = Options::trip_bytes: always for two
//     workers, and for small gradients.
//   One worker sends nothing.
// Both sum in the order of the replicas, so the copies stay equal bit by bit and runs are
// reproducible (on machines of one kind: the rest of an update may differ in the last bit between
// kinds of CPU).
#pragma once

#include <string>
#include <vector>

#include "distributed/cluster/cluster_spec.h"
#include "frontends/cpp/optimizers/optimizers.h"
#include "frontends/cpp/strategies/replica.h"

namespace leat {

// Synchronous, in-graph: one program (the chief's) builds the model once for every worker, with the
// same names; one update per step with the mean of the replicas' gradients.
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
// one variable, made in replica 0. Gradients of rows are made dense before they are exchanged.
class AllReduce {
 public:
  struct Options {
    std::string worker_job = "worker";
    // Gradients of one dtype are exchanged in buckets of so many bytes, in the order in which
    // backward makes them (last layer first), so that sending begins before backward ends; a larger
    // gradient is a bucket of its own. As in torch's DistributedDataParallel.
    int64_t bucket_bytes = 25 << 20;
    // αB, see above: the bytes that could be sent in the time of one trip. Measured with
    // cluster_step --trip-bytes, workers on one host over loopback: direct exchange took 0.6 to 0.9
    // of the time where it sends 20 to 75 KB more, and the same at 1 MB.
    int64_t trip_bytes = 256 << 10;
  };
  // INVALID_ARGUMENT if the cluster lacks the job.
  explicit AllReduce(const ClusterSpec& cluster) : AllReduce(cluster, Options{}) {}
  AllReduce(const ClusterSpec& cluster, Options options);

  int workers() const { return static_cast<int>(worker_tasks_.size()); }

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
  std::string root(int index) const;                   // "worker_1/"; "" for replica 0
  std::vector<Gradients> gradients(const Optimizer& optimizer, const std::vector<Output>& losses,
                                   std::vector<Output> variables) const;
  void exchange(Graph& graph, std::vector<Gradients>& all) const;

  Options options_;
  std::vector<int> worker_tasks_;
};

}  // namespace leat
