// Training steps of seven usual networks (models/networks.h), by gradient descent: in this process
// on one thread or more, or with the variables on a parameter server and the batch on the worker.
// Prints one JSON line, with the loss of the first steps.
//   models --model cnn --batch 64
//   leat run --embed local:ps=1,worker=1 -- models --model cnn --batch 64
// --nodes: the nodes on which a step spends most instead, from its own trace.
#include <leat/leat.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>
#include <iomanip>
#include <iostream>
#include <map>
#include <optional>

#include "tools/bench/busy_core.h"
#include "tools/bench/models/networks.h"

namespace {

using namespace leat;
using Clock = std::chrono::steady_clock;

struct Flags {
  std::string model = "mlp";
  int64_t batch = 64;
  double seconds = 5;
  int loss_steps = 10;
  int threads = 1;
  std::string mixed_precision = "none";
  bool nodes = false, busy = false;
};

// A step that computes its loss and trains.
struct Training {
  Output loss;
  Node* update;
};

Training make_training(Graph& graph, const Flags& flags, const std::string& worker) {
  const Output loss = bench::loss_of(flags.model, graph, flags.batch, worker);
  // Without the moving averages of nn::batch_norm: the peers keep none.
  const Sgd descent(0.01);
  return {loss, &descent.apply_gradients(descent.compute_gradients(loss),
                                         {.update_ops = std::vector<Output>()})};
}

// With the variables on the ps where there is one.
Training make_training(Graph& graph, const Flags& flags, const Cluster& cluster) {
  if (!cluster.task()) return make_training(graph, flags, "");
  const auto& jobs = cluster.spec().jobs();
  check(jobs.contains("ps") && jobs.contains("worker") && jobs.at("worker").size() == 1,
        "models trains in one process, or under `leat run local:ps=1,worker=1`; got ",
        cluster.spec().to_json());
  const ParameterServer strategy(cluster.spec());
  const auto on_worker = strategy.replica(graph, 0);
  return make_training(graph, flags, "/job:worker/task:0");
}

void print_nodes(Session& session, const Training& training) {
  std::map<std::string, std::vector<double>> times;  // of each node, in all runs
  constexpr int runs = 9;
  for (int i = 0; i < runs; ++i) {
    RunMetadata metadata;
    session.run({}, {training.loss}, {*training.update}, {.trace = true}, &metadata);
    std::map<std::string, double> sums;
    for (const TraceEvent& event : metadata.events)
      sums[concat(event.op, "  ", event.node)] +=
          static_cast<double>(event.end_ns - event.start_ns);
    for (const auto& [node, sum] : sums) times[node].push_back(sum);
  }
  std::vector<std::pair<double, std::string>> medians;
  for (auto& [node, sums] : times) {
    std::sort(sums.begin(), sums.end());
    medians.emplace_back(sums[sums.size() / 2] * 1e-3, node);
  }
  std::sort(medians.rbegin(), medians.rend());
  for (size_t i = 0; i < std::min<size_t>(medians.size(), 25); ++i)
    std::cout << std::fixed << std::setprecision(0) << std::setw(10) << medians[i].first << " µs  "
              << medians[i].second << "\n";
}

void print_line(const Flags& flags, const std::vector<float>& losses, std::vector<double>& times) {
  std::sort(times.begin(), times.end());
  const double median = times[times.size() / 2];
  std::cout << R"({"bench": "model_)" << flags.model << R"(", "peer": "leat", "batch": )"
            << flags.batch << R"(, "unit": "step", "median_s": )" << median << R"(, "min_s": )"
            << times.front() << R"(, "reps": )" << times.size() << R"(, "samples_per_s": )"
            << static_cast<double>(flags.batch) / median << R"(, "losses": [)"
            << std::setprecision(8);
  for (size_t i = 0; i < losses.size(); ++i) std::cout << (i > 0 ? ", " : "") << losses[i];
  std::cout << "]}" << std::endl;
}

void run(const Flags& flags) {
  std::optional<bench::BusyCore> busy;
  if (flags.busy) busy.emplace();
  const Cluster cluster = join_cluster();
  Graph graph;
  const Training training = make_training(graph, flags, cluster);
  Session session(graph, {.target = cluster.target(),
                          .mixed_precision = mixed_precision_from_text(flags.mixed_precision),
                          .threads = flags.threads});
  session.initialize();
  const Callable step = session.prepare({}, {training.loss}, {*training.update});
  std::vector<Tensor> fetches;
  std::vector<float> losses;
  for (int i = 0; i < flags.loss_steps; ++i) {
    step.run({}, fetches);
    losses.push_back(fetches[0].item<float>());
  }
  if (flags.nodes) return print_nodes(session, training);
  std::vector<double> times;
  const auto seconds_since = [](Clock::time_point then) {
    return std::chrono::duration<double>(Clock::now() - then).count();
  };
  for (const auto start = Clock::now();
       seconds_since(start) < flags.seconds || std::ssize(times) < 5;) {
    const auto before = Clock::now();
    step.run({}, fetches);
    times.push_back(seconds_since(before));
  }
  print_line(flags, losses, times);
}

}  // namespace

int main(int argc, char** argv) {
  Flags flags;
  CLI::App app{"Training steps of usual networks."};
  app.add_option("--model", flags.model)
      ->check(CLI::IsMember(bench::networks()))
      ->capture_default_str();
  app.add_option("--batch", flags.batch, "examples per step")
      ->check(CLI::PositiveNumber)
      ->capture_default_str();
  app.add_option("--seconds", flags.seconds, "how long to measure; at least 5 steps")
      ->capture_default_str();
  app.add_option("--loss-steps", flags.loss_steps, "first steps, whose losses are printed")
      ->check(CLI::PositiveNumber)
      ->capture_default_str();
  app.add_option("--threads", flags.threads, "of this process")
      ->check(CLI::PositiveNumber)
      ->capture_default_str();
  app.add_option("--mixed-precision", flags.mixed_precision, "none, bf16, f16, gpu_f16 or tf32")
      ->capture_default_str();
  app.add_flag("--busy", flags.busy, "while another process computes on the last core");
  app.add_flag("--nodes", flags.nodes, "print the nodes on which a step spends most instead");
  CLI11_PARSE(app, argc, argv);
  try {
    run(flags);
    return 0;
  } catch (const Error& error) {
    std::cerr << error.status().to_string() << std::endl;
    return 1;
  }
}
