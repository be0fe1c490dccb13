// Parameter server: variables, their slots and updates live on ps tasks, forward and backward
// passes on workers. A graph transformation (device requests and a mean); the runtime does not know
// about it. Li et al., OSDI 2014; Abadi et al., OSDI 2016 §4.4.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "distributed/cluster/cluster_spec.h"
#include "frontends/cpp/optimizers/optimizers.h"
#include "frontends/cpp/strategies/replica.h"

namespace leat {

// Two ways to train, chosen by the arguments of minimize(). Asynchronous, between-graph: every
// worker runs this program with its own index. Each builds one replica; variables have the same
// names, so they are shared. An update is applied as soon as its gradient arrives; nobody waits. k
// workers make k updates of the full rate in the time of one synchronous step.
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
class ParameterServer {
 public:
  struct Options {
    std::string ps_job = "ps";
    std::string worker_job = "worker";
  };
  // INVALID_ARGUMENT if the cluster lacks one of the jobs.
  explicit ParameterServer(const ClusterSpec& cluster) : ParameterServer(cluster, Options{}) {}
  ParameterServer(const ClusterSpec& cluster, Options options);

  int workers() const { return static_cast<int>(worker_tasks_.size()); }

  // While it lives, new variables go to the ps task that holds the fewest bytes so far (programs
  // that make the same variables in the same order agree on it), other nodes to worker `index`.
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
  struct Load;  // bytes placed so far, by ps task
  DeviceName place_variable(const Shape& shape, DType dtype) const;

  Options options_;
  std::vector<int> worker_tasks_;
  std::shared_ptr<Load> load_;
};

}  // namespace leat
