#include "frontends/cpp/strategies/pipeline_parallel.h"

#include <cstdio>
#include <memory>
#include <optional>

#include "core/text_table.h"
#include "frontends/cpp/strategies/parts/collectives.h"
#include "frontends/cpp/strategies/pipeline_model.h"

namespace leat {
namespace {

Replicas workers_of(const StrategyCluster& cluster, const PipelineParallelOptions& options) {
  if (!options.devices.empty()) return Replicas(cluster, options.devices);
  return Replicas(cluster, {.workers = options.worker_job});
}

// The first worker of each pipeline, once the options are known to fit.
Replicas heads_of(const Replicas& workers, const PipelineParallelOptions& options) {
  check(options.data > 0, "pipeline: data must be positive, got ", options.data);
  check(options.micro_batches > 0, "pipeline: micro_batches must be positive, got ",
        options.micro_batches);
  check(options.stages >= 0, "pipeline: stages must not be negative, got ", options.stages);
  check(options.bytes_per_second > 0, "pipeline: bytes_per_second must be positive, got ",
        options.bytes_per_second);
  const int n = workers.count();
  if (options.stages > 0) {
    check(options.stages * options.data == n, "pipeline: stages=", options.stages,
          " and data=", options.data, " need ", options.stages * options.data,
          " workers, and the cluster has ", n);
  } else {
    check(n % options.data == 0, "pipeline: data=", options.data, " does not divide the ", n,
          " workers of the cluster");
  }
  const int stages = n / options.data;
  check(options.cuts.empty() || std::ssize(options.cuts) == stages - 1, "pipeline: ", stages,
        " stages begin at ", stages - 1, " cuts, but ", options.cuts.size(), " are named");
  std::vector<int> heads;
  for (int d = 0; d < options.data; ++d) heads.push_back(d * stages);
  return workers.only(heads);
}

std::string milliseconds(double seconds) {
  char text[32];
  std::snprintf(text, sizeof(text), "%.3g", seconds * 1e3);
  return text;
}

std::string explain(const PipelineParallelOptions& options, const std::vector<DeviceName>& devices,
                    const std::vector<PipelineModel::Item>& items,
                    const std::vector<size_t>& begins, const std::vector<PipelineBlock>& blocks) {
  const size_t k = begins.size();
  std::vector<double> forward(k), backward(k);
  std::vector<size_t> count(k);
  for (size_t i = 0, stage = 0; i < items.size(); ++i) {
    if (stage + 1 < k && i == begins[stage + 1]) ++stage;
    forward[stage] += items[i].forward;
    backward[stage] += items[i].backward;
    ++count[stage];
  }
  const bool is_measured = options.cost == PipelineParallelOptions::Cost::measured && k > 1;
  const PipelineTimes times = pipeline_times(blocks, forward, backward);
  const std::vector<int> kept = micro_batches_kept(blocks, static_cast<int>(k));
  std::vector<std::vector<std::string>> rows = {{"stage", "device", "begins at", "nodes",
                                                 "forward ms", "backward ms", "kB in",
                                                 "micro-batches kept", "idle"}};
  for (size_t s = 0; s < k; ++s) {
    const auto& first = items[begins[s]];
    const double bytes = s == 0 ? 0 : first.cut * options.bytes_per_second / 2;
    const std::string device = devices[s].to_string();
    rows.push_back({concat(s), device.empty() ? "this process" : device, first.node->name,
                    concat(count[s]), milliseconds(forward[s]), milliseconds(backward[s]),
                    concat(static_cast<int64_t>(bytes / 1e3 + 0.5)), concat(kept[s]),
                    concat(static_cast<int>(100 * times.bubble[s] + 0.5), " %")});
  }
  std::string out = concat(
      "pipeline: ", k, k == 1 ? " stage, " : " stages, ", options.micro_batches, " micro-batches, ",
      options.schedule == PipelineSchedule::gpipe ? "gpipe" : "1f1b", ", ", options.data,
      options.data == 1 ? " pipeline" : " pipelines", "; costs of a micro-batch ",
      is_measured ? "measured in this process"
                  : "estimated from shapes (only their proportions count)",
      "\n", aligned(rows), "\n");
  return out + draw_pipeline(blocks, times);
}

}  // namespace

PipelineParallel::PipelineParallel(const StrategyCluster& cluster, Options options)
    : Strategy(heads_of(workers_of(cluster, options), options)),
      options_(std::move(options)),
      workers_(workers_of(cluster, options_)) {}

Training PipelineParallel::minimize(Graph& graph, const Optimizer& optimizer, const Dataset& data,
                                    const ModelFunction& model, Location at) const {
  Training training = new_training(graph, /*drives_all=*/true);
  if (training.is_idle) return training;
  const std::vector<PipelineBlock> blocks =
      pipeline_blocks(options_.schedule, stages(), options_.micro_batches);
  std::vector<std::unique_ptr<PipelineModel>> models;
  std::vector<Losses> losses;
  PipelineModel::Stages stage_of;
  for (int d = 0; d < options_.data; ++d) {
    const auto there = replicas().first_or_copy(graph, d);
    std::vector<DeviceName> devices;
    for (int s = 0; s < stages(); ++s) devices.push_back(workers_.worker(d * stages() + s));
    if (d == 0) training.global_step = global_step(graph, at);
    const Batch batch = next_batch(training, data, d, at);
    MicroBatches parts = [&] {
      const auto on_head = replicas().on_worker(graph, d);
      return divide(batch, options_.micro_batches, at);
    }();
    const size_t before = trainable_variables(graph).size();
    models.push_back(std::make_unique<PipelineModel>(
        graph, d == 0 ? "" : replicas().prefix(d), std::move(parts),
        [&](const Batch& part) { return build(model, part, at); },
        [&](Output loss) {
          const std::vector<Output> all = trainable_variables(graph);
          std::vector<Output> own(all.begin() + static_cast<std::ptrdiff_t>(before), all.end());
          if (d > 0) {
            own.clear();
            for (const GradientAndVariable& each : models.front()->gradients())
              own.push_back(replicas().copy_of(each.variable, d));
          }
          check(!own.empty(), "the model function (", at, ") makes no trainable variable");
          return optimizer.compute_gradients(loss, own);
        }));
    PipelineModel& made = *models.back();
    if (d == 0) {
      const auto costs = options_.cost == Options::Cost::measured && stages() > 1
                             ? measured_costs(graph, made.targets())
                             : estimated_costs(graph);
      const auto items = made.items(costs, options_.bytes_per_second);
      std::vector<double> of_item, of_cut;
      for (const auto& item : items) {
        of_item.push_back(item.forward + item.backward);
        of_cut.push_back(item.cut);
      }
      const auto begins = options_.cuts.empty() ? cut_into_stages(of_item, of_cut, stages())
                                                : made.named_cuts(items, options_.cuts);
      stage_of = made.stages_of(items, begins);
      training.explanation = explain(options_, devices, items, begins, blocks);
    }
    made.place(stage_of, devices);
    made.add_micro_batches(blocks, devices);
    const auto on_head = replicas().on_worker(graph, d);
    losses.push_back(made.mean_losses(at));
  }
  set_shown(training, losses);
  training.step = &update(training, optimizer, models, at);
  return training;
}

// Exchanges the gradients between pipelines, stage by stage, and applies them.
Node& PipelineParallel::update(const Training& training, const Optimizer& optimizer,
                               const std::vector<std::unique_ptr<PipelineModel>>& models,
                               Location at) const {
  Graph& graph = *training.graph;
  std::vector<std::vector<GradientAndVariable>> gradients;
  for (int d = 0; d < options_.data; ++d) {
    const auto there = replicas().first_or_copy(graph, d);
    gradients.push_back(models[static_cast<size_t>(d)]->mean_gradients(options_.schedule, at));
  }
  for (int s = 0; options_.data > 1 && s < stages(); ++s) {
    std::vector<int> group;
    for (int d = 0; d < options_.data; ++d) group.push_back(d * stages() + s);
    std::vector<size_t> of_stage;
    for (size_t v = 0; v < gradients.front().size(); ++v) {
      const GradientAndVariable& first = gradients.front()[v];
      if (first.gradient && models.front()->stage_of(first.variable) == s) of_stage.push_back(v);
    }
    collectives::all_reduce(workers_.only(group), gradients, of_stage, {}, at);
  }
  std::vector<Output> updates;
  for (int d = 0; d < options_.data; ++d) {
    const auto there = replicas().first_or_copy(graph, d);
    updates.push_back(
        optimizer
            .apply_gradients(gradients[static_cast<size_t>(d)],
                             {.global_step = d == 0 ? training.global_step : Output{},
                              .update_ops = models[static_cast<size_t>(d)]->update_ops()},
                             at)
            .output());
  }
  const auto chief = replicas().first_or_copy(graph, 0);
  return updates.size() == 1 ? *updates.front().node : group(graph, updates, "update", at);
}

}  // namespace leat
