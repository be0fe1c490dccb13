// Elastic averaging SGD: every worker trains a copy of its own, which a spring ties to a centre.
#pragma once

#include <string>

#include "frontends/cpp/strategies/strategy.h"

namespace leat {

struct EasgdOptions {
  std::string ps_job = "ps";
  std::string worker_job = "worker";
  int64_t steps = 10;  // τ: local steps between two exchanges
  // α: the part of the distance that an exchange moves; 0: 0.9 / (τN) for N workers, as
  // TensorFlow's ElasticAverageOptimizer.
  double moving_rate = 0;
};

// Cost: 2S bytes per worker in τ steps, S those of the variables: the centre down, the difference
// up, in 2 trips; nothing crosses in between.
//
// Every τ steps worker k, on its own: e = α (w_k - c); w_k -= e; c += e. The centre c has the names
// of the model: checkpoints have it, and evaluate() reads it. It lives on the servers.
// Asynchronous, between-graph: every worker runs its own program. global_step counts the local
// steps of all workers; a worker adds its own when it exchanges. Local slots of optimizers are not
// saved. Zhang, Choromanska and LeCun, "Deep learning with elastic averaging SGD", NIPS 2015.
class Easgd : public Strategy {
 public:
  using Options = EasgdOptions;
  explicit Easgd(const StrategyCluster& cluster, Options options = {});

  Training minimize(Graph& graph, const Optimizer& optimizer, const Dataset& data,
                    const ModelFunction& model, Location at = here()) const override;

 private:
  Options options_;
};

}  // namespace leat
