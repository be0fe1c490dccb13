#include "frontends/cpp/strategies/strategy.h"

namespace leat {

Training Strategy::new_training(Graph& graph, bool drives_all) const {
  Training out;
  out.graph = &graph;
  out.is_chief = replicas_.is_chief();
  out.target = replicas_.target();
  out.is_idle = drives_all && !out.is_chief;
  out.replicas = drives_all ? replicas_.count() : 1;
  return out;
}

Batch Strategy::next_batch(Training& training, const Dataset& data, int k, Location at) const {
  const auto worker = replicas_.on_worker(*training.graph, k);
  Batch batch = data.share(replicas_.count(), k, at).next(*training.graph, at);
  const NameScope scope(*training.graph, "samples");
  const Output first = batch[0];
  Output rows = first.shape().has_rank() && first.shape().rank() == 0
                    ? constant(*training.graph, int32_t{1})
                    : shape_of(first, i32, at)[0];
  training.samples = training.samples ? training.samples + rows : rows;
  training.inputs.push_back(first);
  return batch;
}

Losses Strategy::build(Training& training, const Dataset& data, const ModelFunction& model, int k,
                       Location at) const {
  return build(model, next_batch(training, data, k, at), at);
}

Losses Strategy::build(const ModelFunction& model, const Batch& batch, Location at) const {
  Losses out = model(batch);
  check(bool{out.loss}, "the model function (", at, ") returns no loss");
  check(!out.loss.shape().has_rank() || out.loss.shape().elements() == 1, "the loss '",
        out.loss.name(), "' of the model function (", at,
        ") must be one number, the mean over the ", "batch, not ", out.loss.shape());
  return out;
}

std::vector<Losses> Strategy::build_all(Training& training, const Dataset& data,
                                        const ModelFunction& model,
                                        ReplicaScope (Replicas::*scope)(Graph&, int) const,
                                        Location at) const {
  Graph& graph = *training.graph;
  std::vector<Losses> out;
  for (int k = 0; k < replicas_.count(); ++k) {
    const ReplicaScope there = (replicas_.*scope)(graph, k);
    if (k == 0) training.global_step = global_step(graph, at);
    out.push_back(build(training, data, model, k, at));
  }
  return out;
}

std::vector<Output> losses_of(const std::vector<Losses>& built) {
  std::vector<Output> out;
  for (const Losses& each : built) out.push_back(each.loss);
  return out;
}

void Strategy::set_shown(Training& training, const std::vector<Losses>& losses) const {
  const auto mean_of = [&](std::vector<Output> values) {
    if (values.size() == 1) return values.front();
    return add_n(values) * (1.0 / static_cast<double>(values.size()));
  };
  Graph& graph = *training.graph;
  // Where one program drives all, it need not be a worker's.
  const bool is_own = losses.size() == 1 && replicas_.has_own();
  const auto here = replicas_.on_worker(graph, is_own ? replicas_.own() : 0);
  const NameScope scope(graph, "shown");
  std::vector<Output> all;
  for (const Losses& each : losses) all.push_back(each.loss);
  training.loss = mean_of(all);
  const auto& metrics = losses.front().metrics;
  for (size_t i = 0; i < metrics.size(); ++i) {
    all.clear();
    for (const Losses& each : losses) {
      check(each.metrics.size() == metrics.size(), "the model function returns ", metrics.size(),
            " metrics for one replica and ", each.metrics.size(), " for another");
      all.push_back(each.metrics[i].second);
    }
    training.metrics.push_back({metrics[i].first, mean_of(all)});
  }
}

Losses Strategy::evaluate(Graph& graph, const Batch& batch, const ModelFunction& model) const {
  const int worker = replicas_.is_chief() ? 0 : replicas_.own();
  const auto there = replicas_.sharing(graph, worker, graph.unique_name("evaluation"));
  return model(batch);
}

}  // namespace leat
