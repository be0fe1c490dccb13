// Downpour SGD: workers that fetch the variables and push gradients at their own pace.
#pragma once

#include <string>

#include "frontends/cpp/strategies/strategy.h"

namespace leat {

struct DownpourOptions {
  std::string ps_job = "ps";
  std::string worker_job = "worker";
  int64_t push = 1;   // n_push: steps between two pushes of the gradients added up since
  int64_t fetch = 1;  // n_fetch: steps between two fetches of the variables
  // η of the worker's own steps on its copy, between two fetches. 0: the copy waits for a fetch.
  double local_rate = 0.01;
};

// Cost: S bytes up in n_push steps and S down in n_fetch per worker, S those of the variables, in a
// trip each.
//
// A worker's step: g; w_k -= ηg; sum += g. Every n_push steps the servers apply the sum with the
// given optimizer (the paper's is Adagrad) and the worker's sum is 0 again; every n_fetch steps
// w_k = w. A worker that ends pushes what is left. Nobody waits. Asynchronous, between-graph: every
// worker runs its own program. global_step counts the local steps of all workers; a worker adds its
// own when it pushes. Dean et al., "Large scale distributed deep networks", NIPS 2012,
// algorithm 7.1.
class Downpour : public Strategy {
 public:
  using Options = DownpourOptions;
  explicit Downpour(const StrategyCluster& cluster, Options options = {});

  Training minimize(Graph& graph, const Optimizer& optimizer, const Dataset& data,
                    const ModelFunction& model, Location at = here()) const override;

 private:
  Options options_;
};

}  // namespace leat
