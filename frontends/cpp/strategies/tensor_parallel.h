// Tensor parallelism: the workers of a group train one replica of the model together. Each has a
// part of every large variable and of its slots, and computes with it; between the ops, collectives
// pass what another part needs. With data parallelism as a mesh: several such groups, each with its
// share of the data.
//   const auto strategy = make_strategy("tensor_parallel:shards=2:data=2", cluster);  // 4 workers
// Training::explanation then lists variables and collectives, with the bytes that these send.
#pragma once

#include <string>

#include "frontends/cpp/strategies/strategy.h"

namespace leat {

struct TensorParallelOptions {
  std::string worker_job = "worker";
  int64_t shards = 0;         // parts of the model; 0: as many as fit, workers / data
  int64_t data = 1;           // groups, each with its share of the data; shards · data = workers
  bool explains_ops = false;  // Training::explanation has the state of every op, too
};

// The model function is called once, as for one device; optimizer and gradients belong to what is
// split (sharding/plan.h says how the split is chosen, sharding/rules.h which ops have one). Worker
// k of group g is worker g · shards + k. Results are those of one device, up to the order of sums:
//  * A variable that is split is made of "w/part_0", … on the workers, with the initial value of
//    the whole; a checkpoint has it as "w", which any other program restores. What is not split is
//    on worker 0, with copies on the others.
//  * Extents are split that are known and a multiple of `shards`; all else is replicated, as are
//    ops that have no rule. Random numbers and other effects are made once in a group.
//  * Gradients are averaged between groups, in buckets, by the workers of one part.
// Outputs that the model function keeps for itself are not valid when minimize() returns: its nodes
// are taken out of the graph again. UNIMPLEMENTED for models with while loops or conditions.
// In-graph: the chief's program drives all workers.
class TensorParallel : public Strategy {
 public:
  using Options = TensorParallelOptions;
  // INVALID_ARGUMENT unless shards · data is the number of workers.
  explicit TensorParallel(const StrategyCluster& cluster, Options options = {});

  Training minimize(Graph& graph, const Optimizer& optimizer, const Dataset& data,
                    const ModelFunction& model, Location at = here()) const override;

  int shards() const { return shards_; }

 private:
  TensorParallel(const Replicas& workers, const Options& options);

  Replicas workers_;
  int shards_;
  bool explains_ops_;
};

}  // namespace leat
