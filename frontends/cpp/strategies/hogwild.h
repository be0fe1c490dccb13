// Hogwild: threads of one process train the same variables, and none waits for another.
#pragma once

#include <string>

#include "frontends/cpp/strategies/strategy.h"

namespace leat {

struct HogwildOptions {
  std::string worker_job = "worker";
  int64_t threads = 4;
};

// Cost: nothing crosses. Each thread makes steps of its own over its share of the data; an update
// is applied as soon as it is there, to variables that others may have changed since they were
// read. It pays where updates touch few rows (gather, nn::embedding): then they seldom meet. Unlike
// in the paper, two updates of one variable do not overlap, so none is lost in part; whoever comes
// second waits for that moment. Threads have slots of their own in optimizers that keep some,
// and each begins with the rate of few steps; cyclades.h shares them.
// global_step counts the steps of all threads. In a cluster the chief's worker does all of it. Niu,
// Recht, Ré and Wright, "Hogwild!", NIPS 2011.
class Hogwild : public Strategy {
 public:
  using Options = HogwildOptions;
  explicit Hogwild(const StrategyCluster& cluster = {}, const Options& options = {});

  Training minimize(Graph& graph, const Optimizer& optimizer, const Dataset& data,
                    const ModelFunction& model, Location at = here()) const override;

 private:
  Options options_;
};

}  // namespace leat
