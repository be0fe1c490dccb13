#include "frontends/cpp/strategies/hogwild.h"

namespace leat {

Hogwild::Hogwild(const StrategyCluster& cluster, const Options& options)
    : Strategy(Replicas(cluster, {.workers = options.worker_job}).first()), options_(options) {
  check(options_.threads > 0, "hogwild: threads must be positive, got ", options_.threads);
}

Training Hogwild::minimize(Graph& graph, const Optimizer& optimizer, const Dataset& data,
                           const ModelFunction& model, Location at) const {
  Training training = new_training(graph, /*drives_all=*/true);
  if (training.is_idle) return training;
  for (int64_t i = 0; i < options_.threads; ++i) {
    const auto scope = i == 0 ? replicas().on_worker(graph, 0)
                              : replicas().sharing(graph, 0, concat("thread_", i));
    if (i == 0) training.global_step = global_step(graph, at);
    const Dataset own = data.share(options_.threads, i, at);
    const Losses losses = build(training, own, model, 0, at);
    Node& step = optimizer.minimize(losses.loss, {.global_step = training.global_step}, at);
    if (i > 0) {
      training.lanes.emplace_back(step);
      continue;
    }
    training.step = step;
    training.loss = losses.loss;
    training.metrics = losses.metrics;
  }
  training.inputs.clear();  // how far each share had been read is not known after a restart
  return training;
}

}  // namespace leat
