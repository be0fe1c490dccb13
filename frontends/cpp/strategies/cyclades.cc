#include "frontends/cpp/strategies/cyclades.h"

#include <algorithm>
#include <charconv>

#include "frontends/cpp/state/queue.h"
#include "frontends/cpp/strategies/parts/conflicts.h"

namespace leat {
namespace {

Queue queue_of_samples(Graph& graph, const Batch& batch, int64_t thread, Location at) {
  std::vector<DType> dtypes;
  std::vector<Shape> shapes;
  for (const Output& each : batch) {
    check(each.shape().has_rank() && each.shape().rank() > 0, "cyclades (", at,
          ") needs batches of samples, but a component of the data is ", each.dtype(), each.shape(),
          ": call batch()");
    dtypes.push_back(each.dtype());
    std::vector<int64_t> sample;
    for (int axis = 1; axis < each.shape().rank(); ++axis) sample.push_back(each.shape()[axis]);
    shapes.emplace_back(sample);
    check(shapes.back().is_complete(), "cyclades (", at, ") needs samples of complete shapes, got ",
          each.shape());
  }
  return {graph, concat("samples_", thread), dtypes, {.shapes = shapes}, at};
}

// Gradients of rows only.
void check_rows(const std::vector<GradientAndVariable>& gradients, Location at) {
  for (const GradientAndVariable& each : gradients) {
    check(!each.gradient || each.indices, "cyclades (", at, "): the gradient of '",
          variable_name(each.variable), "' is not one of rows, so all samples are in conflict: ",
          "read the variable with take() or nn::embedding(), or train with hogwild");
  }
}

// What an optimizer has made since.
void check_state(const Graph& graph, size_t before, Location at) {
  const std::vector<Output>& all = graph.collection("variables");
  for (size_t i = before; i < all.size(); ++i) {
    check(all[i].shape().rank() > 0, "cyclades (", at, "): the optimizer keeps '",
          variable_name(all[i]), "' for all rows, so all updates are in conflict: use one that ",
          "keeps something for each row only, such as Sgd, Momentum, Adagrad or Ftrl");
  }
}

}  // namespace

Cyclades::Cyclades(const StrategyCluster& cluster, Options options)
    : Strategy(Replicas(cluster, {.workers = options.worker_job}).first()),
      options_(std::move(options)) {
  check(options_.threads > 0, "cyclades: threads must be positive, got ", options_.threads);
}

std::vector<std::vector<Output>> Cyclades::tables_of(const Batch& batch, Location at) const {
  std::vector<std::vector<Output>> out;
  for (const std::string& id : options_.ids) {
    int number = 0;
    const auto [end, error] = std::from_chars(id.data(), id.data() + id.size(), number);
    const bool is_number = error == std::errc() && end == id.data() + id.size();
    out.push_back({is_number ? batch[number] : batch[id]});
  }
  if (!out.empty()) return out;
  out.emplace_back();
  for (const Output& each : batch) {
    if (is_integer(each.dtype())) out.front().push_back(each);
  }
  check(!out.front().empty(), "cyclades (", at, ") needs to know which rows a sample touches, but ",
        "no component of the data is of integers");
  return out;
}

Training Cyclades::minimize(Graph& graph, const Optimizer& optimizer, const Dataset& data,
                            const ModelFunction& model, Location at) const {
  Training training = new_training(graph, /*drives_all=*/true);
  if (training.is_idle) return training;
  const Batch batch = next_batch(training, data, 0, at);
  std::vector<Queue> samples;
  std::vector<Output> shown;  // of a sample: the loss and the metrics
  std::vector<Queue> done;    // one queue, once its types are known
  for (int64_t i = 0; i < options_.threads; ++i) {
    const auto scope = i == 0 ? replicas().on_worker(graph, 0)
                              : replicas().sharing(graph, 0, concat("thread_", i), true);
    if (i == 0) training.global_step = global_step(graph, at);
    samples.push_back(queue_of_samples(graph, batch, i, at));
    const Losses losses = model(Batch(samples.back().dequeue_many(1, at), batch.names()));
    check(bool{losses.loss}, "the model function (", at, ") returns no loss");
    const auto gradients = optimizer.compute_gradients(losses.loss);
    check_rows(gradients, at);
    const size_t before = graph.collection("variables").size();
    Node& update = optimizer.apply_gradients(gradients, {}, at);
    check_state(graph, before, at);
    shown = {reshape(losses.loss, {})};
    for (const auto& [name, metric] : losses.metrics) {
      shown.push_back(reshape(metric, {}));
      if (i == 0) training.metrics.push_back({name, {}});
    }
    if (i == 0) {
      std::vector<DType> dtypes;
      for (const Output& each : shown) dtypes.push_back(each.dtype());
      done.emplace_back(graph, "done", dtypes,
                        QueueOptions{.shapes = std::vector<Shape>(dtypes.size())}, at);
    }
    const ControlScope after(graph, {update});
    training.lanes.emplace_back(done.front().enqueue(shown, at));
  }

  const auto worker = replicas().on_worker(graph, 0);
  const NameScope scope(graph, "cyclades");
  const Output threads = without_conflicts(tables_of(batch, at), options_.threads, at);
  std::vector<std::vector<Output>> of_thread(samples.size());
  for (const Output& component : batch) {
    const auto parts = dynamic_partition(component, threads, options_.threads, at);
    for (size_t i = 0; i < parts.size(); ++i) of_thread[i].push_back(parts[i]);
  }
  std::vector<Output> given, closed;
  for (size_t i = 0; i < samples.size(); ++i)
    given.push_back(samples[i].enqueue_many(of_thread[i], at).output());
  const std::vector<Output> results = [&] {
    const ControlScope after(graph, given);
    return done.front().dequeue_many(shape_of(batch[0], i32)[0], at);
  }();
  training.loss = mean(results[0]);
  for (size_t i = 1; i < results.size(); ++i)
    training.metrics[i - 1].second = mean(cast(results[i], f32));
  const Output counted = [&] {
    const ControlScope after(graph, {results[0]});
    return assign_add(training.global_step, 1, at);
  }();
  training.step = &group(graph, {counted}, "update", at);
  for (const Queue& each : samples) closed.push_back(each.close({}, at).output());
  closed.push_back(done.front().close({.cancel_pending = true}, at).output());
  training.stop_lanes = group(graph, closed, "stop", at);
  return training;
}

}  // namespace leat
