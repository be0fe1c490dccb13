// What a step costs on a cluster: one copy per worker under `leat run`, each prints one JSON line.
//   leat run local:ps=1,worker=3 -- cluster_step --work mlp --batch 100 --seconds 8
// Work: null = add 1 to a scalar on every ps task; lr = logistic regression, 10,000 features;
// softmax 784-10; snn 784-500-10; mlp 784-500-500-10, on random data kept in memory, gradient
// descent. Asynchronous: every copy updates on its own. Synchronous: the chief's copy drives all
// workers, one update per step.
#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>
#include <iostream>
#include <random>

#include "frontends/cpp/cluster_member.h"
#include "frontends/cpp/nn.h"
#include "frontends/cpp/parameter_server.h"
#include "frontends/cpp/readiness.h"
#include "frontends/cpp/session.h"

namespace {

using namespace leat;
using Clock = std::chrono::steady_clock;

struct Flags {
  std::string work = "null";
  std::string mode = "async";
  int64_t batch = 100;
  double seconds = 5;
  int64_t max_steps = 0;
};

struct Model {
  std::vector<Output> inputs;
  Output loss;
};

nn::Dense layer(Graph& graph, int64_t inputs, int64_t units, int number, bool has_relu) {
  nn::DenseOptions options;
  if (has_relu) options.activation = [](Output x) { return relu(x); };
  return {graph, inputs, units, concat("layer_", number), options};
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

Model apply(Graph& graph, const std::vector<nn::Dense>& layers, int replica) {
  const NameScope scope(graph, concat("replica_", replica));
  const int64_t features = layers.front().kernel().shape()[0];
  const Output x = placeholder(graph, "x", f32, {any, features});
  const Output y = placeholder(graph, "y", i32, {any});
  Output h = x;
  for (const nn::Dense& dense : layers) h = dense(h);
  const Output loss = mean(nn::softmax_cross_entropy(h, y));
  return {{x, y}, loss};
}

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

Node& build_null(Graph& graph, const ClusterSpec& cluster) {
  std::vector<Output> updates;
  for (const auto& [index, address] : cluster.jobs().at("ps")) {
    const DeviceScope on(graph, concat("/job:ps/task:", index));
    const Output scalar = variable(graph, concat("scalar_", index), {});
    updates.push_back(assign_add(scalar, constant(graph, Tensor::scalar(1.0F), "one")));
  }
  return group(graph, updates, "null_step");
}

void run(const Flags& flags) {
  const ClusterMember member = join_cluster();
  const ResolvedCluster& cluster = member.cluster();
  check(cluster.task.has_value(),
        "run this under `leat run local:ps=1,worker=1 -- …`: TF_CONFIG is not set");
  const ParameterServer strategy(cluster.spec);
  const bool is_sync = flags.mode == "sync" && flags.work != "null";
  if (is_sync && !member.is_chief()) return;
  const int worker = cluster.task->index;
  Graph graph;
  const auto on_worker = strategy.replica(graph, worker);
  std::vector<Output> inputs, losses;
  Node* train = nullptr;
  std::vector<Source> sources;
  if (flags.work == "null") {
    train = &build_null(graph, cluster.spec);
  } else {
    const std::vector<nn::Dense> layers = make_layers(graph, flags.work);
    const int replicas = is_sync ? strategy.workers() : 1;
    for (int k = 0; k < replicas; ++k) {
      const auto there = strategy.replica(graph, is_sync ? k : worker);
      const Model model = apply(graph, layers, k);
      inputs.insert(inputs.end(), model.inputs.begin(), model.inputs.end());
      losses.push_back(model.loss);
      const bool is_lr = flags.work == "lr";
      sources.emplace_back(is_lr ? 10000 / strategy.workers() : 6000, is_lr ? 10000 : 784,
                           is_lr ? 2 : 10, worker * 16 + k);
    }
    train = &strategy.minimize(GradientDescent(0.01), losses);
  }
  const Readiness readiness(graph);
  SessionOptions options;
  options.target = member.target();
  Session session(graph, options);
  if (member.is_chief()) {
    readiness.initialize(session);
  } else {
    readiness.wait(session);
  }
  const Callable step = session.prepare(inputs, {}, {*train});
  std::vector<Tensor> feeds, fetches;
  std::vector<double> times;
  const auto one_step = [&] {
    feeds.clear();
    for (Source& source : sources) source.next(flags.batch, feeds);
    step.run(feeds, fetches);
  };
  for (int i = 0; i < 5; ++i) one_step();
  const auto start = Clock::now();
  const auto seconds_since = [](Clock::time_point then) {
    return std::chrono::duration<double>(Clock::now() - then).count();
  };
  while (flags.max_steps > 0 ? static_cast<int64_t>(times.size()) < flags.max_steps
                             : seconds_since(start) < flags.seconds) {
    const auto before = Clock::now();
    one_step();
    times.push_back(seconds_since(before));
  }
  const double wall = seconds_since(start);
  std::sort(times.begin(), times.end());
  const auto steps = static_cast<double>(times.size());
  std::cout << R"({"bench": "cluster_)" << flags.work << R"(", "peer": "leat", "mode": ")"
            << flags.mode << R"(", "worker": )" << worker << R"(, "median_s": )"
            << times[times.size() / 2] << R"(, "min_s": )" << times.front()
            << R"(, "steps_per_s": )" << steps / wall << R"(, "samples_per_s": )"
            << (sources.empty()
                    ? 0
                    : steps *
                          static_cast<double>(flags.batch * static_cast<int64_t>(sources.size())) /
                          wall)
            << "}" << std::endl;
}

}  // namespace

int main(int argc, char** argv) {
  Flags flags;
  CLI::App app{"Steps of a parameter-server cluster; run it under `leat run`."};
  app.add_option("--work", flags.work)
      ->check(CLI::IsMember({"null", "lr", "softmax", "snn", "mlp"}))
      ->capture_default_str();
  app.add_option("--mode", flags.mode)
      ->check(CLI::IsMember({"async", "sync"}))
      ->capture_default_str();
  app.add_option("--batch", flags.batch, "examples per worker and step")->capture_default_str();
  app.add_option("--seconds", flags.seconds, "how long to measure")->capture_default_str();
  app.add_option("--steps", flags.max_steps, "measure so many steps instead");
  CLI11_PARSE(app, argc, argv);
  try {
    run(flags);
    return 0;
  } catch (const Error& error) {
    std::cerr << error.status().to_string() << std::endl;
    return 1;
  }
}
