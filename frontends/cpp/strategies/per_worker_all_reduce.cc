#include "frontends/cpp/strategies/per_worker_all_reduce.h"

#include <algorithm>

#include "frontends/cpp/strategies/parts/program_group.h"
#include "frontends/cpp/strategies/parts/reduction.h"

namespace leat {

PerWorkerAllReduce::PerWorkerAllReduce(const StrategyCluster& cluster, Options options)
    : Strategy(Replicas(cluster, {.workers = options.worker_job})), options_(std::move(options)) {
  check(collectives::goes_between_programs(options_.algorithm),
        "all_reduce:replicas=per_worker goes directly or in chunks: algorithm is direct, chunks or "
        "automatic");
}

Training PerWorkerAllReduce::minimize(Graph& graph, const Optimizer& optimizer, const Dataset& data,
                                      const ModelFunction& model, Location at) const {
  Training training = new_training(graph, /*drives_all=*/false);
  const int own = replicas().own();
  check(training.is_chief == (own == 0),
        "all_reduce:replicas=per_worker needs the program of worker 0 as the chief");
  training.replicas = replicas().count();
  training.begins_together = true;
  const Batch batch = next_batch(training, data, own, at);
  Losses losses;
  {
    const auto chief = replicas().on_worker(graph, 0);
    training.global_step = global_step(graph, at);
    losses = build(model, batch, at);
    // Nobody runs it: slots need originals that they can be copied from.
    if (own != 0) optimizer.minimize(losses.loss, {.global_step = training.global_step}, at);
  }
  const std::vector<Output>& updates = graph.collection("update_ops");
  const size_t of_originals = own == 0 ? 0 : updates.size();
  const auto there = replicas().first_or_copy(graph, own);
  std::vector<Output> variables = trainable_variables(graph);
  const std::vector<Output> originals = variables;
  if (own != 0) {
    training.global_step = variable(graph, "global_step", {}, i64, {.trainable = false}, at);
    losses = build(model, batch, at);
    for (Output& each : variables) each = replicas().copy_of(each, own);
  }
  set_shown(training, {losses});

  std::vector<GradientAndVariable> used;
  std::vector<Output> gradients;
  std::vector<std::string> names;
  const std::vector<GradientAndVariable> all = optimizer.compute_gradients(losses.loss, variables);
  for (size_t v = all.size(); v-- > 0;) {  // as backward makes them
    if (!all[v].gradient) continue;
    used.push_back(densify(all[v], at));
    gradients.push_back(collectives::reshaped(used.back().gradient, all[v].variable.shape()));
    names.push_back(variable_name(originals[v]));
  }
  collectives::ProgramGroup group_of_all(graph, replicas(), "all_reduce", at);
  const std::vector<Output> means =
      group_of_all.all_reduce(gradients, names, read_variable(training.global_step, at),
                              {.reduction = options_.reduction,
                               .algorithm = options_.algorithm,
                               .bucket_bytes = options_.bucket_bytes,
                               .trip_bytes = options_.trip_bytes},
                              at);
  for (size_t i = 0; i < used.size(); ++i) used[i].gradient = means[i];
  std::reverse(used.begin(), used.end());

  // The chief's step that is under way, or the last one: so it is known whether a step that failed
  // has changed variables.
  Output begun;
  if (own == 0) {
    begun = variable(graph, "all_reduce/begun", {}, initializers::zeros(), i64,
                     {.trainable = false}, at);
    training.is_torn = not_equal(begun, training.global_step);
  }
  std::vector<Output> of_step = group_of_all.sent();
  {
    const ControlScope when_all_are_there(graph, means);
    std::vector<Output> noted;
    if (begun) noted.push_back(assign(begun, training.global_step + 1, at));
    const ControlScope after(graph, noted);
    const std::vector<Output> own_updates(
        updates.begin() + static_cast<std::ptrdiff_t>(of_originals), updates.end());
    Node& update = optimizer.apply_gradients(
        used, {.global_step = training.global_step, .update_ops = own_updates}, at);
    of_step.push_back(update.output());
  }
  training.step = of_step.size() == 1 ? of_step.front().node : &group(graph, of_step, "step", at);

  Node* const met = group_of_all.begin(at);
  training.begin = met;
  if (begun) {
    std::vector<Output> come;
    if (met != nullptr) come.push_back(met->output());
    const ControlScope when_all_have_come(graph, come);
    training.begin = assign(begun, read_variable(training.global_step, at), at).node;
  }
  training.end = group_of_all.leave(/*has_failed=*/false, at);
  training.end_after_error = group_of_all.leave(/*has_failed=*/true, at);
  return training;
}

}  // namespace leat
