// Local SGD: every worker trains a copy of its own, and from time to time all take the mean.
#pragma once

#include <string>

#include "frontends/cpp/strategies/parts/collectives.h"
#include "frontends/cpp/strategies/strategy.h"

namespace leat {

struct LocalSgdOptions {
  std::string worker_job = "worker";
  // τ: local steps between two exchanges; 0: none but one at the end (SimuParallelSGD).
  int64_t steps = 10;
  // Block momentum (BMUF); without it the next block starts from the mean.
  bool has_block_momentum = false;
  double momentum = 0;      // μ of the blocks
  double block_rate = 1;    // ζ
  bool is_nesterov = true;  // starts a block where the momentum will take it
  // Whether the momentum of the workers' optimizers (Momentum, Adam, AdaMax, AddSign, PowerSign,
  // RMSProp) is 0 after each exchange; their other slots go on. It is that of weights which the
  // workers have left: beside the momentum of the blocks it makes the loss oscillate. CNTK clears
  // it, too.
  bool clears_momentum = false;
};

// Cost: 2(N-1)/N · S bytes sent by each of N workers in τ steps, S those of the variables, in 2
// trips; nothing crosses in between (but the control messages of a step).
//
// Every τ steps w_k = (1/N) Σ w_j, of all numbers that the model has made, moving averages
// included; slots of optimizers stay local. global_step counts the steps of
// one worker. The variables without a prefix are those of replica 0. In-graph: the chief's program
// drives all.
//
// With block momentum, w_g the weights that a block started from: G = w_g - mean(w_k);
// D = μD + ζG; w = w_g - D; with Nesterov w = w - μD; then w_g = w_k = w. μ = 0, ζ = 1 is plain
// local SGD.
// Moritz et al., "SparkNet", ICLR 2016; Zinkevich et al., "Parallelized SGD", NIPS 2010 (one mean
// at the end); Chen and Huo, "Blockwise model-update filtering", ICASSP 2016 (CNTK's form).
class LocalSgd : public Strategy {
 public:
  using Options = LocalSgdOptions;
  explicit LocalSgd(const StrategyCluster& cluster, Options options = {});

  Training minimize(Graph& graph, const Optimizer& optimizer, const Dataset& data,
                    const ModelFunction& model, Location at = here()) const override;

 private:
  Output next_start(Output mean, Output start, Output momentum, Location at) const;

  Options options_;
};

}  // namespace leat
