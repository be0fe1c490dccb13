#include "frontends/cpp/strategies/local_sgd.h"

#include <cmath>
#include <limits>

#include "frontends/cpp/strategies/parts/copies.h"

namespace leat {

LocalSgd::LocalSgd(const StrategyCluster& cluster, Options options)
    : Strategy(Replicas(cluster, {.workers = options.worker_job})), options_(std::move(options)) {
  check(options_.steps >= 0,
        "local_sgd: steps must be positive, or 0 for one exchange at the end, ", "got ",
        options_.steps);
  check(options_.momentum >= 0 && options_.momentum < 1,
        "bmuf: the momentum must be in [0, 1), got ", options_.momentum);
  check(options_.block_rate > 0 && std::isfinite(options_.block_rate),
        "bmuf: the block rate must be positive, got ", options_.block_rate);
}

namespace {

// Whether the slot is the momentum of one of the optimizers of optimizers.h: 0 at first.
bool is_momentum(Graph& graph, const std::string& slot) {
  const std::string_view name = std::string_view(slot).substr(slot.rfind('/') + 1);
  const auto of = std::string_view(slot).substr(0, slot.size() - name.size());
  // RMSProp's is the last of two, or of three.
  if (name == "RMSProp_1") return !variable_named(graph, concat(of, "RMSProp_2"));
  for (const char* known : {"Momentum", "Adam", "AdaMax", "AddSign", "PowerSign", "RMSProp_2"}) {
    if (name == known) return true;
  }
  return false;
}

}  // namespace

// What the next block of one variable starts from; updates both slots.
Output LocalSgd::next_start(Output mean, Output start, Output momentum, Location at) const {
  const Output delta =
      assign(momentum, momentum * options_.momentum + (start - mean) * options_.block_rate, at);
  Output next = start - delta;
  if (options_.is_nesterov) next = next - delta * options_.momentum;
  return assign(start, next, at);
}

Training LocalSgd::minimize(Graph& graph, const Optimizer& optimizer, const Dataset& data,
                            const ModelFunction& model, Location at) const {
  Training training = new_training(graph, /*drives_all=*/true);
  if (training.is_idle) return training;
  const int n = replicas().count();
  const size_t before = graph.collection("variables").size(),
               trainable_before = trainable_variables(graph).size();
  const std::vector<Losses> built = build_all(training, data, model, &Replicas::first_or_copy, at);
  set_shown(training, built);
  const std::vector<Output> numbers = float_variables(graph, before),
                            all_trainable = trainable_variables(graph);
  const std::vector<Output> trainable(
      all_trainable.begin() + static_cast<std::ptrdiff_t>(trainable_before), all_trainable.end());
  check(!trainable.empty(), "the model function (", at, ") makes no trainable variable");
  const auto copy_of = [&](const Output& variable, int k) {
    return k == 0 ? variable : replicas().copy_of(variable, k);
  };

  std::vector<Output> updates;
  const size_t before_slots = graph.collection("initializers").size();
  for (int k = 0; k < n; ++k) {
    const auto there = replicas().first_or_copy(graph, k);
    std::vector<Output> copies;
    for (const Output& variable : trainable) copies.push_back(copy_of(variable, k));
    updates.push_back(
        optimizer
            .minimize(
                built[static_cast<size_t>(k)].loss,
                {.global_step = k == 0 ? training.global_step : Output{}, .variables = copies}, at)
            .output());
  }
  std::vector<Output> momenta;
  const std::vector<Output>& made = graph.collection("initializers");
  for (size_t i = before_slots; i < made.size(); ++i) {
    const std::string& name = variable_name(made[i].node->inputs[0]);
    if (is_momentum(graph, name)) momenta.push_back(variable_named(graph, name));
  }
  const auto chief = replicas().first_or_copy(graph, 0);
  training.step = &group(graph, updates, "update", at);
  if (n == 1 && !options_.has_block_momentum) return training;

  const NameScope scope(graph, "average");
  std::vector<collectives::PerReplica> values;
  for (const Output& variable : numbers) {
    values.emplace_back();
    for (int k = 0; k < n; ++k) values.back().push_back(copy_of(variable, k));
  }
  const auto means = collectives::all_reduce(replicas(), values, {}, at);
  std::vector<Output> assigned;
  for (int k = 0; k < n; ++k) {
    const auto there = replicas().first_or_copy(graph, k);
    for (size_t i = 0; i < numbers.size(); ++i) {
      const Output variable = copy_of(numbers[i], k);
      const ColocationScope with(graph, {variable});
      Output next = means[i][static_cast<size_t>(k)];
      if (options_.has_block_momentum) {
        const Output start = slot(variable, "block_start", initializers::value_of(variable), at),
                     momentum = slot(variable, "block_momentum", initializers::zeros(), at);
        next = next_start(next, start, momentum, at);
      }
      assigned.push_back(assign(variable, next, at));
    }
  }
  for (const Output& momentum : momenta) {
    if (!options_.clears_momentum) break;
    const ColocationScope with(graph, {momentum});
    assigned.push_back(assign(momentum, zeros_like(momentum), at));
  }
  const int64_t never = std::numeric_limits<int64_t>::max();
  training.periodic.push_back(every(options_.steps == 0 ? never : options_.steps,
                                    &group(graph, assigned, "averaged", at), /*at_end=*/true));
  return training;
}

}  // namespace leat
