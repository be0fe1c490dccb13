#include "frontends/cpp/strategies/easgd.h"

#include <cmath>

#include "frontends/cpp/strategies/parts/copies.h"

namespace leat {

Easgd::Easgd(const StrategyCluster& cluster, Options options)
    : Strategy(Replicas(cluster, {.servers = options.ps_job, .workers = options.worker_job})),
      options_(std::move(options)) {
  check(options_.steps > 0, "easgd: steps must be positive, got ", options_.steps);
  const auto n = static_cast<double>(replicas().count());
  if (options_.moving_rate == 0)
    options_.moving_rate = 0.9 / (static_cast<double>(options_.steps) * n);
  check(options_.moving_rate > 0 && options_.moving_rate < 1,
        "easgd: moving_rate must be in (0, 1), got ", options_.moving_rate);
}

Training Easgd::minimize(Graph& graph, const Optimizer& optimizer, const Dataset& data,
                         const ModelFunction& model, Location at) const {
  Training training = new_training(graph, /*drives_all=*/false);
  const CopiedModel copied(*this, training, data, model, at);
  const int own = replicas().own();
  const auto there = replicas().copy(graph, own);
  set_shown(training, {copied.losses()});
  training.global_step = copied.own_step(at);
  training.step = &optimizer.minimize(
      copied.losses().loss,
      {.global_step = training.global_step, .variables = copied.trainable_copies()}, at);

  const NameScope scope(graph, "exchange");
  const std::vector<Output> copies = copied.trainable_copies();
  std::vector<Output> done = copied.push_state({}, at);
  for (size_t i = 0; i < copies.size(); ++i) {
    const Output centre = copied.trainable()[i];
    const Output elastic = (copies[i] - read_variable(centre, at)) * options_.moving_rate;
    done.push_back(assign_sub(copies[i], elastic, at));
    const ColocationScope with(graph, {centre});
    done.push_back(assign_add(centre, elastic, at));
  }
  const Output steps = [&] {
    const ColocationScope with(graph, {copied.step()});
    return assign_add(copied.step(), constant(graph, options_.steps), at);
  }();
  done.push_back(assign(training.global_step, steps, at));
  training.periodic.push_back(every(options_.steps, &group(graph, done, "exchanged", at)));
  return training;
}

}  // namespace leat
