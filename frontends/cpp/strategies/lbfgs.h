// L-BFGS: all data for a gradient, vectors on the servers, scalars where the coordinator is.
#pragma once

#include <string>

#include "frontends/cpp/strategies/strategy.h"

namespace leat {

struct LbfgsOptions {
  std::string ps_job = "ps";  // without such a job the workers' tasks are the servers
  std::string worker_job = "worker";
  // Batches in each worker's share of the data, or in each portion; must be given.
  int64_t batches = 0;
  // 0: each worker has a fixed share. Else the number of portions that the data is cut into, more
  // than there are workers: a worker that is free takes the next one.
  int64_t portions = 0;
  int64_t backups = 0;     // the number of portions, the last ones, that are handed out twice
  int64_t memory = 10;     // m: pairs (s, y) that are kept
  double decrease = 1e-4;  // c of the line search, in (0, 1)
};

// Cost of an evaluation, for which each worker reads its share once: 2S bytes per worker, S those
// of the variables (down, with each batch) and of their gradient (up, once, or once per portion),
// and (2m + 3)² + 4m + 2 numbers per variable between its server and the coordinator; 4 trips.
//
// An evaluation is the loss f and the gradient g of all data at w: the mean over the workers of the
// mean over their batches. It is accepted if f <= f0 + c·t·(g0·d) (Armijo), where w0, f0 and g0 are
// of the last accepted one, w = w0 + t·d. Then the pair s = w - w0, y = g - g0 is kept, unless
// s·y <= 1e-10·y·y; d becomes -H·g, with H the inverse Hessian that the m last pairs give,
// beginning with (s·y)/(y·y) of the last one; and t is 1, or 1/|g| while there is no pair. Else t
// is halved. Either way w = w0 + t·d is next. The two loops over the pairs run on coefficients: the
// servers multiply all pairs, s, y and g with each other, the coordinator sums these products and
// returns the coefficients of d. So it needs one exchange, not one for each product, and the result
// does not depend on the number of servers.
//
// The optimizer given to minimize() is not used, because the rule has no rate, and "update_ops"
// does not run. The model must have no l1 penalty and no noise (dropout, or shuffled batches of
// unequal sizes). `data` repeats, with `batches` batches per share in an epoch. global_step counts
// evaluations. The variables hold the point that is evaluated, and at the end of the training the
// last accepted one. In-graph: the chief's program drives all.
//
// With portions: Dataset::share(portions, p) is portion p, and `data` has `batches` batches of it
// in an epoch. A lane of the training (Training::lanes) for each worker takes tickets from a queue
// beside global_step; a portion's sum of gradients goes up when it is complete. The first answer
// for a portion of an evaluation counts, others are dropped, as are tickets of a portion that has
// been answered: a slow worker does not hold up an evaluation if its portion is among those that
// are handed out twice. A lost one ends the session, as in all in-graph strategies. The order of
// the sum is that in which portions arrive. There are no metrics, and training.loss is that of the
// evaluation.
//
// Dean et al., "Large scale distributed deep networks", NIPS 2012, §4.2 (Sandblaster); Nocedal and
// Wright, "Numerical optimization", 2006, algorithms 3.1, 7.4 and 7.5; Chen, Wang and Zhou,
// "Large-scale L-BFGS using MapReduce", NIPS 2014 (the coefficients).
class Lbfgs : public Strategy {
 public:
  using Options = LbfgsOptions;
  explicit Lbfgs(const StrategyCluster& cluster, Options options = {});

  Training minimize(Graph& graph, const Optimizer& optimizer, const Dataset& data,
                    const ModelFunction& model, Location at = here()) const override;

 private:
  Training with_portions(Training training, const Optimizer& optimizer, const Dataset& data,
                         const ModelFunction& model, Location at) const;

  Options options_;
};

}  // namespace leat
