// Multiverso's sync server: the i-th read of every worker returns the same variables.
#pragma once

#include <string>

#include "frontends/cpp/strategies/strategy.h"

namespace leat {

struct MultiversoOptions {
  std::string ps_job = "ps";
  std::string worker_job = "worker";
};

// Cost: 2S bytes per worker and step, S those of the variables, and two waits for the slowest.
//
// Two clocks, of reads and of updates. A worker's update waits until all have made as many reads as
// it has; its read waits until all have made as many updates. So each step begins from the same
// variables on all workers, and then applies N updates, one per worker, each of the full rate:
// unlike parameter_server:staleness=0, which applies their mean once. A worker whose data ends
// leaves; the others go on without it. Between-graph: every worker runs its own program.
// Microsoft Multiverso, src/server.cpp (SyncServer).
class Multiverso : public Strategy {
 public:
  using Options = MultiversoOptions;
  explicit Multiverso(const StrategyCluster& cluster, const Options& options = {})
      : Strategy(Replicas(cluster, {.servers = options.ps_job, .workers = options.worker_job})) {}

  Training minimize(Graph& graph, const Optimizer& optimizer, const Dataset& data,
                    const ModelFunction& model, Location at = here()) const override;
};

}  // namespace leat
