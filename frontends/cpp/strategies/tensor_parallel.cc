#include "frontends/cpp/strategies/tensor_parallel.h"

#include <algorithm>

#include "frontends/cpp/strategies/sharding/emission.h"
#include "graph/variable_node.h"

namespace leat {
namespace {

int shards_of(const Replicas& workers, const TensorParallelOptions& options) {
  const int64_t count = workers.count(), data = options.data;
  check(data > 0 && options.shards >= 0, "tensor_parallel: shards and data must be positive, got ",
        "shards=", options.shards, " and data=", data);
  const int64_t shards = options.shards > 0 ? options.shards : count / data;
  check(shards > 0 && shards <= count && shards * data == count, "tensor_parallel: shards=", shards,
        " times data=", data, " must be the number of workers, but the cluster has ", count,
        count == 1 ? " worker" : " workers", ": start ", shards * data,
        " or give other numbers, such as shards=", count);
  return static_cast<int>(shards);
}

// The first worker of each group, which reads the group's data.
Replicas leaders(const Replicas& workers, int shards) {
  std::vector<int> numbers;
  for (int k = 0; k < workers.count(); k += shards) numbers.push_back(k);
  return workers.only(numbers);
}

// What one device would run, in a graph of its own.
struct Traced {
  sharding::Step step;
  std::vector<Output> means;
  std::vector<std::string> metrics;
};

std::vector<Output> newer(const std::vector<Output>& outputs, size_t begin) {
  std::vector<Output> out;
  for (const Output& each : outputs) {
    if (static_cast<size_t>(variable_node(each) == nullptr ? each.node->id
                                                           : variable_node(each)->id) >= begin)
      out.push_back(each);
  }
  return out;
}

// Builds the step in `graph`, copies it, and takes it out again.
Traced trace(Graph& graph, const Optimizer& optimizer, const ModelFunction& model,
             const Batch& batch, Output global_step, bool has_groups, Location at) {
  const size_t begin = graph.size();
  const Losses losses = model(batch);
  check(bool{losses.loss} && &losses.loss.graph() == &graph, "the model function (", at,
        ") returns no loss of the graph that its batch is in");
  check(!losses.loss.shape().has_rank() || losses.loss.shape().elements() == 1, "the loss '",
        losses.loss.name(), "' of the model function (", at,
        ") must be one number, the mean over the batch, not ", losses.loss.shape());
  const std::vector<Output> trained = newer(trainable_variables(graph), begin);
  check(!trained.empty(), "the model function (", at, ") makes no trainable variable");
  std::vector<GradientAndVariable> gradients = optimizer.compute_gradients(losses.loss, trained);
  std::erase_if(gradients, [](const GradientAndVariable& each) { return !each.gradient; });
  check(!gradients.empty(), "the loss of the model function (", at,
        ") depends on none of its trainable variables");
  std::vector<int> means;
  if (has_groups) {
    const NameScope scope(graph, "gradients");
    for (GradientAndVariable& each : gradients) {
      each = densify(each, at);
      each.gradient = identity(each.gradient, at);
      each.gradient.node->outputs.write()[0].shape =
          each.gradient.shape().merged(each.variable.shape());
      means.push_back(each.gradient.node->id);
    }
  }
  const int update_begin = static_cast<int>(graph.size());
  Node& update = optimizer.apply_gradients(gradients, {.global_step = global_step}, at);

  Traced out;
  out.step.graph = graph.clone();
  out.step.begin = static_cast<int>(begin);
  out.step.update_begin = update_begin;
  const auto copy_of = [&](const Output& output) {
    check(bool{output} && &output.graph() == &graph, "a metric of the model function (", at,
          ") is an empty Output, or one of another graph");
    return Output{out.step.graph.nodes()[static_cast<size_t>(output.node->id)].get(), output.index};
  };
  out.step.results = {copy_of(losses.loss)};
  for (const auto& [name, metric] : losses.metrics) {
    out.metrics.push_back(name);
    out.step.results.push_back(copy_of(metric));
  }
  out.step.targets = {copy_of({&update, 0}).node};
  for (const int mean : means)
    out.means.push_back({out.step.graph.nodes()[static_cast<size_t>(mean)].get(), 0});
  for (const char* collection : {"variables", "table_initializers"}) {
    for (const Output& each : newer(out.step.graph.collection(collection), begin)) {
      Node* variable = variable_node(each);
      out.step.kept.push_back(variable == nullptr ? each.node : variable);
    }
  }
  graph.truncate(begin);
  return out;
}

}  // namespace

TensorParallel::TensorParallel(const StrategyCluster& cluster, Options options)
    : TensorParallel(Replicas(cluster, {.workers = options.worker_job}), options) {}

TensorParallel::TensorParallel(const Replicas& workers, const Options& options)
    : Strategy(leaders(workers, shards_of(workers, options))),
      workers_(workers),
      shards_(shards_of(workers, options)),
      explains_ops_(options.explains_ops) {}

Training TensorParallel::minimize(Graph& graph, const Optimizer& optimizer, const Dataset& data,
                                  const ModelFunction& model, Location at) const {
  Training training = new_training(graph, /*drives_all=*/true);
  if (training.is_idle) return training;
  const sharding::Mesh mesh{workers_, shards_};
  std::vector<Batch> batches;
  for (int g = 0; g < mesh.groups(); ++g) batches.push_back(next_batch(training, data, g, at));
  const Traced traced = [&] {
    const auto first = workers_.first_or_copy(graph, 0);
    training.global_step = global_step(graph, at);
    return trace(graph, optimizer, model, batches[0], training.global_step, mesh.groups() > 1, at);
  }();
  const sharding::Plan plan(traced.step, shards_);
  const auto of_batch = [&](const Output& output, int g) {
    for (int i = 0; i < batches[0].size(); ++i) {
      const Output& first = batches[0][i];
      if (first.node->id == output.node->id && first.index == output.index)
        return batches[static_cast<size_t>(g)][i];
    }
    return Output{};
  };
  const sharding::Emitted emitted =
      sharding::emit(graph, traced.step, plan, mesh, of_batch, traced.means, at);
  std::vector<Losses> losses;
  for (const std::vector<Output>& of_group : emitted.results) {
    Losses& own = losses.emplace_back();
    own.loss = of_group[0];
    for (size_t i = 0; i < traced.metrics.size(); ++i)
      own.metrics.push_back({traced.metrics[i], of_group[i + 1]});
  }
  set_shown(training, losses);
  const auto there = workers_.first_or_copy(graph, 0);
  training.step = &group(graph, emitted.targets, "update", at);
  training.explanation = emitted.made.text(explains_ops_);
  return training;
}

}  // namespace leat
