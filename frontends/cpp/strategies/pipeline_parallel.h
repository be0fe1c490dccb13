// Pipeline parallelism: the layers of a model on several workers, which compute different parts of
// a batch at the same time.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "frontends/cpp/strategies/parts/pipeline_schedule.h"
#include "frontends/cpp/strategies/strategy.h"

namespace leat {

class PipelineModel;

struct PipelineParallelOptions {
  std::string worker_job = "worker";
  // Devices of this program's task to train on instead of the workers' tasks: {"GPU:0", "GPU:1"}.
  std::vector<std::string> devices = {};
  int stages = 0;         // 0: as many as there are workers for each pipeline
  int micro_batches = 4;  // of each batch; four for each stage keep the stages busy (GPipe)
  // Pipelines side by side, each with its own share of the data and the mean of all gradients:
  // stages · data workers, those of a pipeline next to each other.
  int data = 1;
  PipelineSchedule schedule = PipelineSchedule::one_f_one_b;
  // Where stages begin: names of nodes of the model, as many as stages less one. Without names, the
  // stages are cut so that the most expensive one costs least.
  std::vector<std::string> cuts = {};
  // What the nodes cost: measured in a run of the whole model in this process, which reads a batch;
  // or estimated from shapes, for models that this process cannot hold.
  enum class Cost { measured, estimated } cost = Cost::measured;
  double bytes_per_second = 1e9;  // between stages, for what a cut costs
};

// Cost: what crosses the cuts, forward and backward: a trip each way per cut and micro-batch. A
// stage has its own variables and their slots only, and keeps what backward needs of as many
// micro-batches as micro_batches_kept() says. Of a step, (K - 1) / (M + K - 1) is idle time if all
// K stages cost the same; Training::explanation shows stages, costs and idle time.
//
// Synchronous, in-graph: one update per step, with the mean gradient of the M micro-batches, so the
// result is that of the whole batch but for rounding; moving averages of batches follow each
// micro-batch. The model function is called once per pipeline. Each of its nodes, and of the
// gradient's, becomes M nodes, and control edges keep a stage in the order of the schedule. The
// rows of a batch are divided as evenly as possible; a gradient counts by its rows.
//
// A stage is a run of nodes in the order in which the model function makes them; loops and
// conditions are not cut. What several stages use, such as the table of an embedding that is also
// the last layer, lives on the first of them and is sent to the others.
// Huang et al., "GPipe", NeurIPS 2019; Narayanan et al., "PipeDream", SOSP 2019.
class PipelineParallel : public Strategy {
 public:
  using Options = PipelineParallelOptions;
  // INVALID_ARGUMENT if the workers are not stages · data.
  explicit PipelineParallel(const StrategyCluster& cluster, Options options = {});

  Training minimize(Graph& graph, const Optimizer& optimizer, const Dataset& data,
                    const ModelFunction& model, Location at = here()) const override;

  int stages() const { return workers_.count() / options_.data; }

 private:
  Node& update(const Training& training, const Optimizer& optimizer,
               const std::vector<std::unique_ptr<PipelineModel>>& models, Location at) const;

  Options options_;
  Replicas workers_;  // all; those of Strategy are the first of each pipeline
};

}  // namespace leat
