#include "frontends/cpp/strategies/one_device.h"

namespace leat {

Training OneDevice::minimize(Graph& graph, const Optimizer& optimizer, const Dataset& data,
                             const ModelFunction& model, Location at) const {
  Training training = new_training(graph, /*drives_all=*/true);
  training.replicas = 1;
  if (training.is_idle) return training;
  const auto worker = replicas().on_worker(graph, 0);
  training.global_step = global_step(graph, at);
  const Batch batch = next_batch(training, data, 0, at);
  const Losses losses = model(batch);
  check(bool{losses.loss}, "the model function (", at, ") returns no loss");
  training.loss = losses.loss;
  training.metrics = losses.metrics;
  training.step = &optimizer.minimize(losses.loss, {.global_step = training.global_step}, at);
  return training;
}

}  // namespace leat
