#include "frontends/cpp/strategies/downpour.h"

#include <cmath>

#include "frontends/cpp/strategies/parts/copies.h"

namespace leat {

Downpour::Downpour(const StrategyCluster& cluster, Options options)
    : Strategy(Replicas(cluster, {.servers = options.ps_job, .workers = options.worker_job})),
      options_(std::move(options)) {
  check(options_.push > 0 && options_.fetch > 0,
        "downpour: push and fetch must be positive numbers of steps, got ", options_.push, " and ",
        options_.fetch);
  check(options_.local_rate >= 0 && std::isfinite(options_.local_rate),
        "downpour: local_rate must not be negative, got ", options_.local_rate);
}

Training Downpour::minimize(Graph& graph, const Optimizer& optimizer, const Dataset& data,
                            const ModelFunction& model, Location at) const {
  Training training = new_training(graph, /*drives_all=*/false);
  const CopiedModel copied(*this, training, data, model, at);
  set_shown(training, {copied.losses()});
  training.global_step = copied.own_step(at);
  const auto there = replicas().copy(graph, replicas().own());
  const std::vector<GradientAndVariable> gradients =
      optimizer.compute_gradients(copied.losses().loss, copied.trainable_copies());

  std::vector<Output> done;
  std::vector<GradientAndVariable> sums;
  for (size_t i = 0; i < gradients.size(); ++i) {
    if (!gradients[i].gradient) continue;
    const GradientAndVariable each = densify(gradients[i], at);
    const ColocationScope with(graph, {each.variable});
    const Output sum = slot(each.variable, "pushed", initializers::zeros(), at);
    done.push_back(assign_add(sum, each.gradient, at));
    if (options_.local_rate > 0)
      done.push_back(assign_sub(each.variable, each.gradient * options_.local_rate, at));
    sums.push_back({sum, copied.trainable()[i]});
  }
  const Output since = slot(training.global_step, "since_push", initializers::zeros(), at);
  done.push_back(assign_add(training.global_step, 1, at));
  done.push_back(assign_add(since, 1, at));
  training.step = &group(graph, done, "update", at);

  std::vector<Output> pushed = copied.push_state({}, at);
  {
    const auto servers = replicas().on_servers(graph, replicas().own());
    std::vector<GradientAndVariable> to_apply;
    for (const GradientAndVariable& each : sums)
      to_apply.push_back({read_variable(each.gradient, at), each.variable});
    pushed.push_back(optimizer.apply_gradients(to_apply, {}, at).output());
  }
  {
    const ControlScope after(graph, pushed);
    for (const GradientAndVariable& each : sums) {
      const ColocationScope with(graph, {each.gradient});
      pushed.push_back(assign(each.gradient, zeros_like(each.gradient), at));
    }
  }
  const Output made = read_variable(since, at);
  const Output steps = [&] {
    const ColocationScope with(graph, {copied.step()});
    return read_variable(assign_add(copied.step(), made, at), at);
  }();
  pushed.push_back(assign(training.global_step, steps, at));
  {
    const ControlScope after(graph, {made});
    pushed.push_back(assign(since, 0, at));
  }
  training.periodic.push_back(
      every(options_.push, &group(graph, pushed, "pushed", at), /*at_end=*/true));
  training.periodic.push_back(every(options_.fetch, &copied.fetch({}, at)));
  return training;
}

}  // namespace leat
