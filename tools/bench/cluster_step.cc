// What a step costs on a cluster: one copy per worker under `leat run`, each prints one JSON line.
//   leat run local:ps=1,worker=3 -- cluster_step --work mlp --batch 100 --seconds 8
//   leat run local:worker=3 -- cluster_step --work mlp --mode all-reduce
// Work: null = add 1 to a scalar on every ps task; lr = logistic regression, 10,000 features;
// softmax 784-10; snn 784-500-10; mlp 784-500-500-10, on random data kept in memory, gradient
// descent. Modes: async = a parameter server, every copy of the program updates on its own; sync =
// a parameter server, the chief's copy drives all workers, one update per step; all-reduce = the
// same with variables on the workers. Each worker has its own examples in its memory in all modes:
// no batch goes over the wire (async under `leat run --embed`).
#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>
#include <iostream>
#include <optional>
#include <random>

#include "frontends/cpp/cluster.h"
#include "frontends/cpp/nn/nn.h"
#include "frontends/cpp/session.h"
#include "frontends/cpp/strategies/all_reduce.h"
#include "frontends/cpp/strategies/parameter_server.h"
#include "frontends/cpp/training/readiness.h"

namespace {

using namespace leat;
using Clock = std::chrono::steady_clock;

struct Flags {
  std::string work = "null";
  std::string mode = "async";
  int64_t batch = 100;
  double seconds = 5;
  int64_t max_steps = 0;
  int in_flight = 1;
  AllReduce::Options all_reduce;
};

// What a step runs and is fed.
struct Work {
  std::vector<Output> inputs;
  Targets targets;
  std::vector<Output> fills;  // once, before the first step
  int replicas = 0;           // that a step trains
};

nn::Dense layer(Graph& graph, int64_t inputs, int64_t units, int number, bool has_relu) {
  nn::DenseOptions options;
  if (has_relu) options.activation = relu;
  options.name = concat("layer_", number);
  return {graph, inputs, units, options};
}

std::vector<nn::Dense> make_layers(Graph& graph, const std::string& work) {
  std::vector<int64_t> sizes = {784};
  if (work == "lr") sizes = {10000};
  if (work == "snn") sizes.push_back(500);
  if (work == "mlp") sizes.insert(sizes.end(), {500, 500});
  sizes.push_back(work == "lr" ? 2 : 10);
  std::vector<nn::Dense> out;
  for (size_t i = 0; i + 1 < sizes.size(); ++i) {
    out.push_back(layer(graph, sizes[i], sizes[i + 1], static_cast<int>(i), i + 2 < sizes.size()));
  }
  return out;
}

Output loss_of(const std::vector<nn::Dense>& layers, Output x, Output y) {
  Output h = x;
  for (const nn::Dense& dense : layers) h = dense(h);
  return mean(nn::softmax_cross_entropy(h, y));
}

int64_t examples(const Flags& flags, int workers) {
  return flags.work == "lr" ? 10000 / workers : 6000;
}
int64_t features(const Flags& flags) { return flags.work == "lr" ? 10000 : 784; }
int classes(const Flags& flags) { return flags.work == "lr" ? 2 : 10; }

// Random examples, and batches of consecutive ones without a copy.
class Source {
 public:
  Source(int64_t count, int64_t features, int classes, uint64_t seed)
      : images_(f32, {count, features}), labels_(i32, {count}) {
    std::mt19937_64 random(seed);
    std::normal_distribution<float> normal;
    for (float& value : images_.span<float>()) value = normal(random);
    for (int32_t& label : labels_.span<int32_t>())
      label = static_cast<int32_t>(random() % static_cast<uint64_t>(classes));
  }
  void next(int64_t batch, std::vector<Tensor>& feeds) {
    const int64_t features = images_.shape()[1];
    const int64_t at = position_ % (images_.shape()[0] - batch + 1);
    position_ += batch;
    feeds.emplace_back(f32, Shape{batch, features}, images_.buffer(),
                       static_cast<size_t>(at * features) * sizeof(float));
    feeds.emplace_back(i32, Shape{batch}, labels_.buffer(),
                       static_cast<size_t>(at) * sizeof(int32_t));
  }

 private:
  Tensor images_, labels_;
  int64_t position_ = 0;
};

// A worker's own random examples: batches in a queue on it, of which each step takes one and puts
// it back. They are handed on, not copied, like a batch that is fed in process.
struct OwnData {
  Output x, y;
  Node* fill;
  Node* put_back;
};

OwnData make_data(Graph& graph, const Flags& flags, int workers, int replica) {
  const NameScope scope(graph, concat("data_", replica));
  const int64_t batches = std::max<int64_t>(examples(flags, workers) / flags.batch, 1);
  const int64_t rows = flags.batch, columns = features(flags);
  const Output images = random::normal(graph, {batches, rows, columns}, {.seed = replica + 1});
  const Output labels = random::integers(graph, {batches, rows}, 0, classes(flags),
                                         {.dtype = i32, .seed = replica + 1});
  const std::vector<DType> types = {f32, i32};
  const Output queue = op_node(graph, "FIFOQueueV2", {}, {{"component_types", types}}).output();
  const std::vector<Output> batch =
      op_outputs("QueueDequeueV2", {queue}, {{"component_types", types}});
  return {reshape(batch[0], {rows, columns}), reshape(batch[1], {rows}),
          &op_node(graph, "QueueEnqueueManyV2", {queue, images, labels}),
          &op_node(graph, "QueueEnqueueV2", {queue, batch[0], batch[1]})};
}

Work null_work(Graph& graph, const ClusterSpec& cluster, const ParameterServer& strategy,
               int worker) {
  const auto on_worker = strategy.replica(graph, worker);
  std::vector<Output> updates;
  for (const auto& [index, address] : cluster.jobs().at("ps")) {
    const DeviceScope on(graph, concat("/job:ps/task:", index));
    const Output scalar = variable(graph, concat("scalar_", index), {});
    updates.push_back(assign_add(scalar, constant(graph, Tensor::scalar(1.0F), "one")));
  }
  Work out;
  out.targets.emplace_back(group(graph, updates, "null_step"));
  return out;
}

const Sgd descent(0.01);

Work async_work(Graph& graph, const Flags& flags, const ParameterServer& strategy, int worker) {
  const auto on_worker = strategy.replica(graph, worker);
  const Output x = placeholder(graph, "x", f32, {any, features(flags)});
  const Output y = placeholder(graph, "y", i32, {any});
  Work out{.inputs = {x, y}, .replicas = 1};
  const Output loss = loss_of(make_layers(graph, flags.work), x, y);
  out.targets.emplace_back(strategy.minimize(descent, loss));
  return out;
}

Work sync_work(Graph& graph, const Flags& flags, const ParameterServer& strategy) {
  const auto on_chief = strategy.replica(graph, 0);
  const std::vector<nn::Dense> layers = make_layers(graph, flags.work);
  Work out{.replicas = strategy.workers()};
  std::vector<Output> losses;
  for (int k = 0; k < strategy.workers(); ++k) {
    const auto there = strategy.replica(graph, k);
    const OwnData data = make_data(graph, flags, strategy.workers(), k);
    losses.push_back(loss_of(layers, data.x, data.y));
    out.fills.push_back(data.fill->output());
    out.targets.emplace_back(*data.put_back);
  }
  out.targets.emplace_back(strategy.minimize(descent, losses));
  return out;
}

Work all_reduce_work(Graph& graph, const Flags& flags, const AllReduce& strategy) {
  Work out{.replicas = strategy.workers()};
  std::vector<Output> losses;
  for (int k = 0; k < strategy.workers(); ++k) {
    const auto replica = strategy.replica(graph, k);
    const OwnData data = make_data(graph, flags, strategy.workers(), k);
    losses.push_back(loss_of(make_layers(graph, flags.work), data.x, data.y));
    out.fills.push_back(data.fill->output());
    out.targets.emplace_back(*data.put_back);
  }
  out.targets.emplace_back(strategy.minimize(descent, losses));
  return out;
}

Work make_work(Graph& graph, const Flags& flags, const ClusterSpec& cluster, int worker) {
  if (flags.mode == "all-reduce")
    return all_reduce_work(graph, flags, AllReduce(cluster, flags.all_reduce));
  const ParameterServer strategy(cluster);
  if (flags.work == "null") return null_work(graph, cluster, strategy, worker);
  return flags.mode == "sync" ? sync_work(graph, flags, strategy)
                              : async_work(graph, flags, strategy, worker);
}

void run(const Flags& flags) {
  const Cluster cluster = join_cluster();
  check(cluster.task().has_value(),
        "run this under `leat run local:ps=1,worker=1 -- …`: TF_CONFIG is not set");
  if (flags.mode != "async" && !cluster.is_chief()) return;
  const int worker = cluster.task()->index;
  Graph graph;
  const Work work = make_work(graph, flags, cluster.spec(), worker);
  std::optional<Source> source;
  if (!work.inputs.empty()) {
    const auto workers = static_cast<int>(cluster.spec().jobs().at("worker").size());
    source.emplace(examples(flags, workers), features(flags), classes(flags), worker * 16);
  }
  const Readiness readiness(graph);
  SessionOptions options;
  options.target = cluster.target();
  Session session(graph, options);
  if (cluster.is_chief()) {
    readiness.initialize(session);
  } else {
    readiness.wait(session);
  }
  if (!work.fills.empty()) session.run({group(graph, work.fills, "fill")});
  const Callable step = session.prepare(work.inputs, {}, work.targets);
  std::vector<Tensor> feeds, fetches;
  std::vector<double> times;
  const auto one_step = [&] {
    feeds.clear();
    if (source) source->next(flags.batch, feeds);
    step.run(feeds, fetches);
  };
  const Callable::StepFeeds feed = [&](int64_t, std::vector<Tensor>& next) {
    if (source) source->next(flags.batch, next);
  };
  const int64_t at_once = flags.in_flight > 1 ? 50 : 1;  // steps per measurement
  for (int i = 0; i < 5; ++i) one_step();
  const auto start = Clock::now();
  const auto seconds_since = [](Clock::time_point then) {
    return std::chrono::duration<double>(Clock::now() - then).count();
  };
  while (flags.max_steps > 0 ? static_cast<int64_t>(times.size()) < flags.max_steps
                             : seconds_since(start) < flags.seconds) {
    const auto before = Clock::now();
    if (flags.in_flight > 1) {
      step.run_steps(at_once, feed, {}, flags.in_flight);
    } else {
      one_step();
    }
    times.push_back(seconds_since(before) / static_cast<double>(at_once));
  }
  const double wall = seconds_since(start);
  std::sort(times.begin(), times.end());
  const auto steps = static_cast<double>(times.size()) * static_cast<double>(at_once);
  std::cout << R"({"bench": "cluster_)" << flags.work << R"(", "peer": "leat", "mode": ")"
            << flags.mode << R"(", "worker": )" << worker << R"(, "median_s": )"
            << times[times.size() / 2] << R"(, "min_s": )" << times.front()
            << R"(, "steps_per_s": )" << steps / wall << R"(, "samples_per_s": )"
            << steps * static_cast<double>(flags.batch * work.replicas) / wall << "}" << std::endl;
}

}  // namespace

int main(int argc, char** argv) {
  Flags flags;
  CLI::App app{"Steps of a cluster; run it under `leat run`."};
  app.add_option("--work", flags.work)
      ->check(CLI::IsMember({"null", "lr", "softmax", "snn", "mlp"}))
      ->capture_default_str();
  app.add_option("--mode", flags.mode)
      ->check(CLI::IsMember({"async", "sync", "all-reduce"}))
      ->capture_default_str();
  app.add_option("--batch", flags.batch, "examples per worker and step")->capture_default_str();
  app.add_option("--seconds", flags.seconds, "how long to measure")->capture_default_str();
  app.add_option("--bucket-bytes", flags.all_reduce.bucket_bytes,
                 "AllReduce::Options, to find the best")
      ->capture_default_str();
  app.add_option("--trip-bytes", flags.all_reduce.trip_bytes,
                 "AllReduce::Options (default: measured), to find the best");
  app.add_option("--steps", flags.max_steps, "measure so many steps instead");
  app.add_option("--in-flight", flags.in_flight,
                 "steps that a program keeps under way (run_steps); the times are means of 50 then")
      ->check(CLI::PositiveNumber);
  CLI11_PARSE(app, argc, argv);
  if (flags.work == "null" && flags.mode != "async") {
    std::cerr << "null steps are asynchronous: every program makes its own" << std::endl;
    return 1;
  }
  try {
    run(flags);
    return 0;
  } catch (const Error& error) {
    std::cerr << error.status().to_string() << std::endl;
    return 1;
  }
}
