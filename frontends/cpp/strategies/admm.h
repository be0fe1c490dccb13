// Consensus ADMM: every worker solves its own part, and multipliers make all agree.
#pragma once

#include <string>

#include "frontends/cpp/strategies/parts/collectives.h"
#include "frontends/cpp/strategies/strategy.h"

namespace leat {

struct AdmmOptions {
  std::string worker_job = "worker";
  int64_t steps = 20;  // of the optimizer on each worker, between two exchanges
  double rho = 1;      // ρ: how strongly a worker is drawn to the consensus
  double l1 = 0;       // λ of a regulariser λ|z|₁ of the consensus
};

// Cost: 2(N-1)/N · S bytes sent by each of N workers in `steps` steps, S those of the variables, in
// 2 trips; nothing crosses in between.
//
// Worker k minimises f_k(w) + ρ/2 |w - z + u_k|² with the optimizer, for `steps` steps, beginning
// where it was. Then z = mean(w_k + u_k), with l1 softly thresholded by λ/(ρN), and u_k += w_k - z.
// z has the names of the model: checkpoints have it, and evaluate() reads it. f_k is the mean loss
// of worker k's share, so with l1 the sum over the workers counts, not the mean. global_step counts
// the steps of one worker. In-graph: the chief's program drives all.
// Boyd et al., "Distributed optimization and statistical learning via ADMM", 2011, §7.1.
class Admm : public Strategy {
 public:
  using Options = AdmmOptions;
  explicit Admm(const StrategyCluster& cluster, Options options = {});

  Training minimize(Graph& graph, const Optimizer& optimizer, const Dataset& data,
                    const ModelFunction& model, Location at = here()) const override;

 private:
  Options options_;
};

}  // namespace leat
