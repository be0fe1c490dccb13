// Strategies that divide the model, by name.
#include "frontends/cpp/strategies/names/names.h"
#include "frontends/cpp/strategies/pipeline_parallel.h"

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
  const int64_t gpus = options.integer("gpus", 0);
  check(gpus >= 0, options.where("gpus"), "must not be negative, got ", gpus);
  for (int64_t i = 0; i < gpus; ++i) out.devices.push_back(concat("GPU:", i));
  return std::make_unique<PipelineParallel>(cluster, out);
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
  };
}

}  // namespace leat::names
