// Cyclades: threads of one process train the same rows, as one thread would.
#pragma once

#include <string>
#include <vector>

#include "frontends/cpp/strategies/strategy.h"

namespace leat {

struct CycladesOptions {
  std::string worker_job = "worker";
  int64_t threads = 4;
  // Components of the data, by name or number, that are ids of rows; each is of a table of its own.
  // None: all components of integers, all of one table, which finds too many conflicts rather than
  // too few.
  std::vector<std::string> ids = {};
};

// Cost: nothing crosses. A step takes a batch of the data. Each of its samples is an update of its
// own: `model` is called for batches of one. Samples that touch a common row, or are connected by
// others that do, go to one thread, in their order; others run at the same time. So the result is,
// bit by bit, that of one thread with batches of one, and no two updates of a row overlap. It pays
// where a batch falls into many components: few ids per sample, tables much larger than a batch.
//
// All variables must get gradients of rows, those of the ids, and the optimizer must keep nothing
// that all rows share (Adam's powers of β): each is an INVALID_ARGUMENT. Threads share the slots of
// the optimizer. global_step counts batches. In a cluster the chief's worker does all of it.
// Pan, Lam, Tu, Papailiopoulos, Zhang, Jordan, Ramchandran, Ré and Recht, "Cyclades: Conflict-free
// asynchronous machine learning", NIPS 2016.
class Cyclades : public Strategy {
 public:
  using Options = CycladesOptions;
  explicit Cyclades(const StrategyCluster& cluster = {}, Options options = {});

  Training minimize(Graph& graph, const Optimizer& optimizer, const Dataset& data,
                    const ModelFunction& model, Location at = here()) const override;

 private:
  std::vector<std::vector<Output>> tables_of(const Batch& batch, Location at) const;

  Options options_;
};

}  // namespace leat
