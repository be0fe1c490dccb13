// One device: training without any exchange, for a program that can also do otherwise.
#pragma once

#include "frontends/cpp/strategies/strategy.h"

namespace leat {

struct OneDeviceOptions {
  std::string worker_job = "worker";
};

// Cost: nothing crosses. The chief's worker trains on all data; others have nothing to do. Where
// there is no cluster, this process does.
class OneDevice : public Strategy {
 public:
  using Options = OneDeviceOptions;
  explicit OneDevice(const StrategyCluster& cluster = {}, const Options& options = {})
      : Strategy(Replicas(cluster, {.workers = options.worker_job}).first()) {}

  Training minimize(Graph& graph, const Optimizer& optimizer, const Dataset& data,
                    const ModelFunction& model, Location at = here()) const override;
};

}  // namespace leat
