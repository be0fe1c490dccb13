// Strategies that divide the model, by name.
#include "frontends/cpp/strategies/all_reduce.h"
#include "frontends/cpp/strategies/names/names.h"
#include "frontends/cpp/strategies/pipeline_parallel.h"
#include "frontends/cpp/strategies/tensor_parallel.h"

namespace leat::names {
namespace {

std::unique_ptr<Strategy> make_pipeline(const StrategyCluster& cluster,
                                        const OptionReader& options) {
  PipelineParallelOptions out;
  out.stages = static_cast<int>(options.integer("stages", 0));
  out.data = static_cast<int>(options.integer("data", 1));
  out.micro_batches = static_cast<int>(options.integer("micro_batches", out.micro_batches));
  out.schedule = pipeline_schedule_named(options.text("schedule", "1f1b"));
  const std::string cost = options.text("cost", "measured");
  check(cost == "measured" || cost == "estimated", options.where("cost"),
        "must be measured or estimated, got '", cost, "'");
  if (cost == "estimated") out.cost = PipelineParallelOptions::Cost::estimated;
  std::string cuts = options.text("cuts", "");
  while (!cuts.empty()) {
    const size_t end = cuts.find('+');
    out.cuts.push_back(cuts.substr(0, end));
    cuts = end == std::string::npos ? "" : cuts.substr(end + 1);
  }
  out.devices = options.gpus("gpus");
  return std::make_unique<PipelineParallel>(cluster, out);
}

std::unique_ptr<Strategy> make_tensor_parallel(const StrategyCluster& cluster,
                                               const OptionReader& options) {
  return std::make_unique<TensorParallel>(
      cluster, TensorParallelOptions{.shards = options.integer("shards", 0),
                                     .data = options.integer("data", 1),
                                     .explains_ops = options.boolean("explain_ops", false)});
}

// The workers as a grid: groups that share the data, and in each the stages of a pipeline, or the
// shards of tensors.
std::unique_ptr<Strategy> make_mesh(const StrategyCluster& cluster, const OptionReader& options) {
  const int64_t data = options.integer("data", 1), stages = options.integer("pipeline", 1),
                shards = options.integer("tensor", 1);
  check(data > 0, options.where("data"), "must be positive, got ", data);
  check(stages > 0, options.where("pipeline"), "must be positive, got ", stages);
  check(shards > 0, options.where("tensor"), "must be positive, got ", shards);
  check(stages == 1 || shards == 1, options.where("tensor"),
        "does not go with a pipeline: give one of the two");
  if (stages > 1) {
    return std::make_unique<PipelineParallel>(
        cluster, PipelineParallelOptions{
                     .stages = static_cast<int>(stages),
                     .micro_batches = static_cast<int>(options.integer("micro_batches", 4)),
                     .data = static_cast<int>(data)});
  }
  check(!options.has("micro_batches"), options.where("micro_batches"), "needs a pipeline");
  if (shards > 1)
    return std::make_unique<TensorParallel>(cluster,
                                            TensorParallelOptions{.shards = shards, .data = data});
  const int workers = Replicas(cluster).count();
  check(data == workers, options.where("data"), "must be the number of workers, ", workers,
        ", if nothing else is divided, got ", data);
  return std::make_unique<AllReduce>(cluster);
}

}  // namespace

Entries of_model_parallel() {
  return {
      {{"pipeline",
        "the layers of the model on several workers, a batch in parts that follow each other",
        {{"stages", "workers / data", "into which the model is cut"},
         {"micro_batches", "4", "into which a batch is divided"},
         {"schedule", "1f1b", "1f1b or gpipe: in which order stages compute"},
         {"data", "1", "pipelines side by side, each with its share of the data"},
         {"cuts", "(none)", "where stages begin: names of nodes or scopes, a+b"},
         {"cost", "measured", "or estimated: of the nodes, for cuts without names"},
         {"gpus", "0", "how many of this task are the stages; 0: the workers"}}},
       make_pipeline},
      {{"tensor_parallel",
        "the workers of a group share each large variable and what is computed with it",
        {{"shards", "workers / data", "the workers of a group"},
         {"data", "1", "groups, each with its share of the data"},
         {"explain_ops", "false", "print how each op is split, too"}}},
       make_tensor_parallel},
      {{"mesh",
        "the workers as a grid: groups that share the data, each a pipeline or tensor_parallel",
        {{"data", "1", "groups, each with its share of the data"},
         {"pipeline", "1", "stages of each"},
         {"tensor", "1", "shards of each"},
         {"micro_batches", "4", "of a pipeline"}}},
       make_mesh},
  };
}

}  // namespace leat::names
