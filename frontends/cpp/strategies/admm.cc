#include "frontends/cpp/strategies/admm.h"

#include <cmath>

#include "frontends/cpp/strategies/parts/copies.h"

namespace leat {
namespace {

// The z that minimises λ|z|₁ + ρN/2 |z - mean|², with threshold = λ/(ρN).
Output soft_threshold(Output mean, double threshold) {
  if (threshold == 0) return mean;
  return sign(mean) * relu(abs(mean) - threshold);
}

}  // namespace

Admm::Admm(const StrategyCluster& cluster, Options options)
    : Strategy(Replicas(cluster, {.workers = options.worker_job})), options_(std::move(options)) {
  check(options_.steps > 0, "admm: steps must be positive, got ", options_.steps);
  check(options_.rho > 0 && std::isfinite(options_.rho), "admm: rho must be positive, got ",
        options_.rho);
  check(options_.l1 >= 0 && std::isfinite(options_.l1), "admm: l1 must not be negative, got ",
        options_.l1);
}

Training Admm::minimize(Graph& graph, const Optimizer& optimizer, const Dataset& data,
                        const ModelFunction& model, Location at) const {
  Training training = new_training(graph, /*drives_all=*/true);
  if (training.is_idle) return training;
  const int n = replicas().count();
  const size_t before = trainable_variables(graph).size();
  std::vector<Losses> built;
  std::vector<Output> consensus;  // z
  for (int k = 0; k < n; ++k) {
    const Batch batch = next_batch(training, data, k, at);
    if (k == 0) {
      const auto worker = replicas().on_worker(graph, 0);
      training.global_step = global_step(graph, at);
      model(batch);
      const std::vector<Output> trainable = trainable_variables(graph);
      consensus.assign(trainable.begin() + static_cast<std::ptrdiff_t>(before), trainable.end());
      check(!consensus.empty(), "the model function (", at, ") makes no trainable variable");
    }
    const auto copy = replicas().copy(graph, k, /*own_state=*/true);
    built.push_back(model(batch));
    check(bool{built.back().loss}, "the model function (", at, ") returns no loss");
  }
  set_shown(training, built);

  std::vector<Output> updates, begun;
  std::vector<collectives::PerReplica> weights(consensus.size()), sums(consensus.size()),
      centres(consensus.size()), duals(consensus.size());
  for (int k = 0; k < n; ++k) {
    const auto copy = replicas().copy(graph, k);
    std::vector<Output> copies;
    for (const Output& variable : consensus) copies.push_back(replicas().copy_of(variable, k));
    std::vector<GradientAndVariable> gradients =
        optimizer.compute_gradients(built[static_cast<size_t>(k)].loss, copies);
    for (size_t i = 0; i < copies.size(); ++i) {
      const ColocationScope with(graph, {copies[i]});
      const Output w = read_variable(copies[i], at),
                   dual = slot(copies[i], "dual", initializers::zeros(), at),
                   centre = slot(copies[i], "consensus", initializers::zeros(), at);
      const Output pull = (w - centre + dual) * options_.rho;
      gradients[i].gradient =
          gradients[i].gradient ? densify(gradients[i], at).gradient + pull : pull;
      gradients[i].indices = {};
      weights[i].push_back(copies[i]);
      centres[i].push_back(centre);
      begun.push_back(assign(centre, read_variable(consensus[i], at), at));
      duals[i].push_back(dual);
      sums[i].push_back(w + dual);
    }
    updates.push_back(
        optimizer
            .apply_gradients(gradients, {.global_step = k == 0 ? training.global_step : Output{}},
                             at)
            .output());
  }
  const auto chief = replicas().on_worker(graph, 0);
  training.step = &group(graph, updates, "update", at);
  training.begin = group(graph, begun, "begin", at);

  const NameScope scope(graph, "agree");
  const auto means = collectives::all_reduce(replicas(), sums, {}, at);
  std::vector<Output> agreed;
  for (int k = 0; k < n; ++k) {
    const auto there = replicas().on_worker(graph, k);
    const auto replica = static_cast<size_t>(k);
    for (size_t i = 0; i < consensus.size(); ++i) {
      const ColocationScope with(graph, {weights[i][replica]});
      const Output z = soft_threshold(means[i][replica], options_.l1 / (options_.rho * n));
      agreed.push_back(assign(duals[i][replica], sums[i][replica] - z, at));
      agreed.push_back(assign(centres[i][replica], z, at));
      if (k == 0) agreed.push_back(assign(consensus[i], z, at));
    }
  }
  training.periodic.push_back(
      every(options_.steps, &group(graph, agreed, "agreed", at), /*at_end=*/true));
  return training;
}

}  // namespace leat
