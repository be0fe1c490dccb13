// All-reduce between programs: each worker's program builds and drives its own replica.
#pragma once

#include <string>

#include "frontends/cpp/strategies/parts/collectives.h"
#include "frontends/cpp/strategies/strategy.h"

namespace leat {

struct PerWorkerAllReduceOptions {
  std::string worker_job = "worker";
  // See collectives.h: automatic, direct or chunks.
  collectives::Algorithm algorithm = collectives::Algorithm::automatic;
  int64_t bucket_bytes = 25 << 20;
  int64_t trip_bytes = 256 << 10;  // not measured: all programs must choose the same algorithm
  collectives::Reduction reduction = collectives::Reduction::mean;
};

// Cost: 2(N-1)/N · S bytes sent by each of N workers per step, S those of the gradients, in 2 trips
// (collectives.h), and a message to each other task. Gradients of rows are sent as whole tensors.
// With algorithm=automatic, GPUs that NCCL connects leave the sums to it (ProgramGroup).
//
// The updates are those of AllReduce: one per step, with the mean of the gradients of all workers.
// There, one program has a graph of N replicas; here, N programs have a graph of one. The model's
// variables are those of worker 0, the chief; the others have copies, which they take from there
// when their session begins, slots of the optimizer included.
//
// When a worker is lost, the step that waits for it fails in all programs, and they begin again as
// soon as it is back: with the variables of the chief, which are not rolled back. A gradient is
// applied when all are there, so either all variables have a step or none; if the chief was stopped
// between two of them, or is itself the one that was lost, its last checkpoint is where all begin
// again. State that a step changes before the exchange, such as moving averages, sees the batch of
// a step that failed twice. Rabit (dmlc) gives a lost worker the results of its peers instead.
//
// A worker whose data ends, or that stops, ends the training of all. INVALID_ARGUMENT at the
// beginning of a session, in all programs, if they built different models (ProgramGroup::begin).
// Sergeev and Del Balso, "Horovod", 2018, for one program per worker.
class PerWorkerAllReduce : public Strategy {
 public:
  using Options = PerWorkerAllReduceOptions;
  // INVALID_ARGUMENT if the cluster lacks the job.
  explicit PerWorkerAllReduce(const StrategyCluster& cluster, Options options = {});

  Training minimize(Graph& graph, const Optimizer& optimizer, const Dataset& data,
                    const ModelFunction& model, Location at = here()) const override;

 private:
  Options options_;
};

}  // namespace leat
