#include "frontends/cpp/strategies/all_reduce.h"

#include <algorithm>

#include "frontends/cpp/control_flow/cond.h"
#include "frontends/cpp/state/queue.h"
#include "frontends/cpp/strategies/parts/link_speed.h"

namespace leat {
namespace {

// The gradient, with the variable's shape where that of the gradient is not known.
Output with_shape(const GradientAndVariable& each) {
  const Shape& shape = each.variable.shape();
  return each.gradient.shape() == shape ? each.gradient : reshape(each.gradient, shape);
}

}  // namespace

AllReduce::AllReduce(const StrategyCluster& cluster, Options options)
    : Strategy(options.devices.empty()
                   ? Replicas(cluster, {.servers = options.ps_job, .workers = options.worker_job})
                   : Replicas(cluster, options.devices)),
      options_(std::move(options)) {
  check(options_.backward_passes_per_step > 0,
        "all_reduce: backward_passes_per_step must be positive, got ",
        options_.backward_passes_per_step);
  const bool has_mean = options_.reduction == collectives::Reduction::mean;
  const bool is_compressed = options_.compression.kind != Compression::Kind::none;
  check(has_mean || !is_compressed, "all_reduce: adasum does not go with compression");
  check(!options_.joins || (has_mean && !is_compressed && options_.backward_passes_per_step == 1),
        "all_reduce: join does not go with adasum, compression or several backward passes");
}

ReplicaScope AllReduce::replica(Graph& graph, int index) const {
  return replicas().first_or_copy(graph, index);
}

// By replica, and there by variable; without variables on which no loss depends.
std::vector<AllReduce::Gradients> AllReduce::gradients(const Optimizer& optimizer,
                                                       const std::vector<Output>& losses,
                                                       std::vector<Output> variables) const {
  Graph& graph = losses.front().graph();
  if (variables.empty()) variables = graph.collection("trainable_variables");
  std::vector<Gradients> all;
  for (int k = 0; k < workers(); ++k) {
    const ReplicaScope there = replica(graph, k);
    std::vector<Output> copies;
    for (const Output& variable : variables) {
      copies.push_back(k == 0 ? variable : replicas().copy_of(variable, k));
    }
    all.push_back(optimizer.compute_gradients(losses[static_cast<size_t>(k)], copies));
  }
  std::vector<Gradients> used(all.size());
  for (size_t v = 0; v < variables.size(); ++v) {
    const bool is_used = std::any_of(all.begin(), all.end(),
                                     [&](const Gradients& g) { return bool(g[v].gradient); });
    for (size_t k = 0; is_used && k < all.size(); ++k) {
      const std::string prefix = k == 0 ? "" : replicas().prefix(static_cast<int>(k));
      const std::string name = prefix + variable_name(variables[v]);
      check(variable_name(all[k][v].variable) == name, "replica ", k, " has no copy '", name,
            "' of the variable '", variable_name(variables[v]),
            "': every replica must make the same variables as replica 0, under the same names");
      check(
          bool(all[k][v].gradient), "the loss '", losses[k].name(), "' of replica ", k,
          " does not depend on its variable '", name,
          "', but another replica's loss does: give the losses in the order of the replicas, all ",
          "of the same model");
      used[k].push_back(densify(all[k][v]));
    }
  }
  check(!used.front().empty(),
        "no loss depends on a trainable variable of its own replica: give the losses ",
        "in the order of the replicas");
  return used;
}

collectives::AllReduceOptions AllReduce::exchange_options() const {
  collectives::AllReduceOptions out{.reduction = options_.reduction,
                                    .algorithm = options_.algorithm,
                                    .bucket_bytes = options_.bucket_bytes,
                                    .overlap = options_.overlap,
                                    .priority = options_.priority,
                                    .workers_per_group = options_.workers_per_group};
  // Two workers send each other as many bytes either way.
  const bool is_chosen = out.algorithm == collectives::Algorithm::automatic && workers() > 2;
  if (options_.trip_bytes) {
    out.trip_bytes = *options_.trip_bytes;
  } else if (is_chosen) {
    out.trip_bytes = link_speed(replicas()).trip_bytes();
  }
  return out;
}

void AllReduce::exchange(std::vector<Gradients>& all, std::vector<Output>& updates,
                         Location at) const {
  if (workers() == 1) return;
  if (options_.compression.kind == Compression::Kind::none)
    return collectives::all_reduce(replicas(), all, exchange_options(), at);
  for (Gradients& of_replica : all) {
    for (GradientAndVariable& each : of_replica) each.gradient = with_shape(each);
  }
  mean_of_compressed(replicas(), all, options_.compression, exchange_options(), updates, at);
}

Node& AllReduce::apply(Graph& graph, const Optimizer& optimizer, const std::vector<Gradients>& all,
                       std::vector<Output> updates, Output global_step, Location at) const {
  for (int k = 0; k < workers(); ++k) {
    const ReplicaScope there = replica(graph, k);
    updates.push_back(optimizer
                          .apply_gradients(all[static_cast<size_t>(k)],
                                           {.global_step = k == 0 ? global_step : Output{}}, at)
                          .output());
  }
  const ReplicaScope chief = replica(graph, 0);
  return updates.size() == 1 ? *updates.front().node : group(graph, updates, "update", at);
}

Node& AllReduce::minimize(const Optimizer& optimizer, const std::vector<Output>& losses,
                          const MinimizeOptions& options, Location at) const {
  check(std::ssize(losses) == workers(), "an all-reduce over ", workers(),
        " workers needs the loss of each replica, got ", losses.size());
  for (size_t k = 0; k < losses.size(); ++k)
    check(bool(losses[k]), "the loss of replica ", k, " is an empty Output");
  Graph& graph = losses.front().graph();
  std::vector<Gradients> all = gradients(optimizer, losses, options.variables);
  std::vector<Output> updates;
  exchange(all, updates, at);
  return apply(graph, optimizer, all, std::move(updates), options.global_step, at);
}

Training AllReduce::minimize(Graph& graph, const Optimizer& optimizer, const Dataset& data,
                             const ModelFunction& model, Location at) const {
  Training training = new_training(graph, /*drives_all=*/true);
  if (training.is_idle) return training;
  if (options_.joins && workers() > 1) return joined(training, optimizer, data, model, at);
  const std::vector<Losses> built = build_all(training, data, model, &Replicas::first_or_copy, at);
  set_shown(training, built);
  if (options_.backward_passes_per_step > 1)
    return accumulated(training, optimizer, gradients(optimizer, losses_of(built), {}), at);
  training.step = &minimize(optimizer, losses_of(built), {.global_step = training.global_step}, at);
  return training;
}

// A step adds the gradients to a sum beside each variable; every p steps the sums are exchanged,
// applied and emptied.
Training AllReduce::accumulated(Training training, const Optimizer& optimizer,
                                std::vector<Gradients> all, Location at) const {
  Graph& graph = *training.graph;
  const double passes = static_cast<double>(options_.backward_passes_per_step);
  std::vector<Output> added, emptied;
  std::vector<std::vector<Output>> sums(all.size());
  for (size_t k = 0; k < all.size(); ++k) {
    const ReplicaScope there = replica(graph, static_cast<int>(k));
    for (GradientAndVariable& each : all[k]) {
      const Output sum = slot(each.variable, "accumulated", initializers::zeros(), at);
      const ColocationScope with(graph, {each.variable});
      added.push_back(assign_add(sum, each.gradient, at));
      sums[k].push_back(sum);
      each.gradient = read_variable(sum, at) * (1 / passes);
    }
  }
  const ReplicaScope chief = replica(graph, 0);
  training.step = &group(graph, added, "accumulate", at);
  std::vector<Output> updates;
  exchange(all, updates, at);
  Node& update = apply(graph, optimizer, all, std::move(updates), training.global_step, at);
  const ControlScope after(graph, {update});
  for (size_t k = 0; k < sums.size(); ++k) {
    const ReplicaScope there = replica(graph, static_cast<int>(k));
    for (const Output& sum : sums[k]) emptied.push_back(assign(sum, zeros_like(sum), at));
  }
  training.batches_per_step = options_.backward_passes_per_step;
  training.periodic.push_back(
      every(options_.backward_passes_per_step, &group(graph, emptied, "update", at)));
  return training;
}

namespace {

// The elements of `data`, with a 1; then its first one over and over, with a 0.
Dataset with_end(const Dataset& data, Location at) {
  const auto flagged = [&](const Dataset& elements, float flag) {
    return elements.map(
        [=](const std::vector<Output>& x) {
          std::vector<Output> out = x;
          out.push_back(constant(x.front().graph(), flag));
          return out;
        },
        at);
  };
  return flagged(data, 1).concatenate(flagged(data.take(1, at).cache("", at).repeat(-1, at), 0),
                                      at);
}

// Fails with OUT_OF_RANGE, as data that has ended, unless there is somebody who contributes.
Output end_unless(const Output& contributors, Location at) {
  Graph& graph = contributors.graph();
  const Queue ended(graph, "all_data_has_ended", {i32}, {}, at);
  return cond(
      contributors > 0, [&] { return constant(graph, int32_t{0}); },
      [&] {
        const ControlScope after(graph, {ended.close({}, at)});
        return ended.dequeue(at)[0];
      });
}

}  // namespace

Training AllReduce::joined(Training training, const Optimizer& optimizer, const Dataset& data,
                           const ModelFunction& model, Location at) const {
  Graph& graph = *training.graph;
  std::vector<Losses> built;
  collectives::PerReplica contributes, shown;
  for (int k = 0; k < workers(); ++k) {
    const ReplicaScope there = replica(graph, k);
    if (k == 0) training.global_step = global_step(graph, at);
    const Dataset own = data.share(workers(), k, at);
    std::vector<Output> components = with_end(own, at).next(graph, at).components();
    contributes.push_back(components.back());
    components.pop_back();
    std::vector<std::string> names;
    for (const Component& each : own.components()) names.push_back(each.name);
    const Batch batch(components, names);
    built.push_back(build(model, batch, at));
    const Output rows = shape_of(batch[0], i32, at)[0] * cast(contributes.back(), i32);
    training.samples = training.samples ? training.samples + rows : rows;
  }
  const auto sum_over = [&](const collectives::PerReplica& values) {
    return collectives::all_reduce(replicas(), values, {.reduction = collectives::Reduction::sum},
                                   at);
  };
  const collectives::PerReplica contributors = sum_over(contributes);
  const Output go_on = [&] {
    const ReplicaScope chief = replica(graph, 0);
    return end_unless(contributors[0], at);
  }();

  std::vector<Gradients> all = gradients(optimizer, losses_of(built), {});
  const auto each_gradient = [&](const auto& change) {
    for (size_t k = 0; k < all.size(); ++k) {
      const ReplicaScope there = replica(graph, static_cast<int>(k));
      for (GradientAndVariable& each : all[k]) each.gradient = change(each.gradient, k);
    }
  };
  // Not a product: what the first batch gives now may not be a number.
  each_gradient([&](const Output& gradient, size_t k) {
    return where(contributes[k] > 0, gradient, zeros_like(gradient));
  });
  auto options = exchange_options();
  options.reduction = collectives::Reduction::sum;
  collectives::all_reduce(replicas(), all, options, at);
  each_gradient(
      [&](const Output& sum, size_t k) { return sum / cast(contributors[k], sum.dtype()); });
  const ControlScope after(graph, {go_on});
  training.step = &apply(graph, optimizer, all, {}, training.global_step, at);

  const ReplicaScope chief = replica(graph, 0);
  const NameScope scope(graph, "shown");
  const auto mean_of = [&](auto&& value) {
    std::vector<Output> values;
    for (size_t k = 0; k < built.size(); ++k) {
      const Output each = cast(reshape(value(built[k]), {}), f32);
      values.push_back(where(contributes[k] > 0, each, zeros_like(each)));
    }
    return add_n(values) / contributors[0];
  };
  training.loss = mean_of([](const Losses& of) { return of.loss; });
  for (size_t i = 0; i < built.front().metrics.size(); ++i) {
    training.metrics.push_back({built.front().metrics[i].first,
                                mean_of([&](const Losses& of) { return of.metrics[i].second; })});
  }
  return training;
}

}  // namespace leat
