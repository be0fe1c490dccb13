// What an all-reduce of one tensor costs between processes of one host, as AllReduce exchanges a
// bucket of gradients: one copy per worker under `leat run --embed`, the chief's prints one JSON
// line.
//   leat run --embed local:worker=3 -- all_reduce --mib 25
//   all_reduce --gpus 4 --mib 25        # between GPUs of this process
// Every worker has a variable of so many MiB; a step makes the sum of all on each. The peers are
// peers/torch_all_reduce.py (gloo) and peers/mpi_all_reduce.c.
#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>
#include <iostream>

#include "frontends/cpp/cluster.h"
#include "frontends/cpp/initializers.h"
#include "frontends/cpp/session.h"
#include "frontends/cpp/strategies/parts/collectives.h"
#include "frontends/cpp/strategies/parts/link_speed.h"
#include "frontends/cpp/variables.h"

namespace {

using namespace leat;
using Clock = std::chrono::steady_clock;

struct Flags {
  double mib = 1;
  int repeats = 200, gpus = 0;
  std::string algorithm = "automatic";
  collectives::AllReduceOptions options;
};

Replicas replicas_of(const Cluster& cluster, int gpus) {
  if (gpus == 0) return Replicas{StrategyCluster(cluster)};
  std::vector<std::string> devices;
  for (int k = 0; k < gpus; ++k) devices.push_back(concat("GPU:", k));
  return {StrategyCluster(), devices};
}

void run(const Flags& flags) {
  const Cluster cluster = join_cluster();
  check(flags.gpus > 0 || cluster.task().has_value(),
        "run this under `leat run --embed local:worker=2 -- …`: TF_CONFIG is not set; or give "
        "--gpus");
  if (!cluster.is_chief()) return;
  Graph graph;
  const Replicas replicas = replicas_of(cluster, flags.gpus);
  const auto elements = static_cast<int64_t>(flags.mib * (1 << 20)) / 4;
  collectives::PerReplica values;
  std::vector<Output> checks;
  for (int k = 0; k < replicas.count(); ++k) {
    const auto there = replicas.on_worker(graph, k);
    values.push_back(variable(graph, concat("values_", k), {elements},
                              initializers::constant(static_cast<double>(k + 1))));
  }
  LinkSpeed speed;
  collectives::AllReduceOptions options = flags.options;
  if (flags.gpus == 0) {
    speed = link_speed(replicas);
    options.trip_bytes = speed.trip_bytes();
  }
  const collectives::PerReplica sums = collectives::all_reduce(replicas, values, options);
  Targets targets;
  for (int k = 0; k < replicas.count(); ++k) {
    const auto there = replicas.on_worker(graph, k);
    targets.emplace_back(sums[static_cast<size_t>(k)]);
    checks.push_back(leat::max(sums[static_cast<size_t>(k)]));
    checks.push_back(leat::min(sums[static_cast<size_t>(k)]));
  }
  Session session(graph, {.target = cluster.target()});
  session.initialize();
  const int n = replicas.count();
  for (const Tensor& each : session.run(checks))
    check(each.item<float>() == static_cast<float>(n * (n + 1) / 2), "the sum is ", each);
  const Callable step = session.prepare({}, {}, targets);
  std::vector<Tensor> feeds, fetches;
  std::vector<double> times;
  for (int i = -10; i < flags.repeats; ++i) {
    const auto before = Clock::now();
    step.run(feeds, fetches);
    if (i >= 0) times.push_back(std::chrono::duration<double>(Clock::now() - before).count());
  }
  std::sort(times.begin(), times.end());
  std::cout << R"({"bench": "all_reduce", "peer": "leat", "workers": )" << n << R"(, "mib": )"
            << flags.mib << R"(, "algorithm": ")" << flags.algorithm << R"(", "median_s": )"
            << times[times.size() / 2] << R"(, "min_s": )" << times.front() << R"(, "trip_us": )"
            << speed.trip_us << R"(, "mb_per_s": )" << speed.megabytes_per_second << "}"
            << std::endl;
}

}  // namespace

int main(int argc, char** argv) {
  Flags flags;
  flags.options.reduction = collectives::Reduction::sum;
  CLI::App app{
      "All-reduce of one tensor; run it under `leat run --embed local:worker=N`, or with --gpus "
      "N."};
  app.add_option("--mib", flags.mib, "size of the tensor")
      ->check(CLI::Range(0.001, 1024.0))
      ->capture_default_str();
  app.add_option("--repeats", flags.repeats)->check(CLI::PositiveNumber)->capture_default_str();
  app.add_option("--gpus", flags.gpus, "of this process, instead of the workers of a cluster")
      ->check(CLI::Range(2, 64));
  app.add_option("--algorithm", flags.algorithm)
      ->check(CLI::IsMember(collectives::algorithms()))
      ->capture_default_str();
  app.add_option("--workers-per-group", flags.options.workers_per_group,
                 "of hierarchical; 0: the workers of a host are a group")
      ->check(CLI::NonNegativeNumber);
  CLI11_PARSE(app, argc, argv);
  flags.options.algorithm = collectives::algorithms().at(flags.algorithm);
  try {
    run(flags);
    return 0;
  } catch (const Error& error) {
    std::cerr << error.status().to_string() << std::endl;
    return 1;
  }
}
