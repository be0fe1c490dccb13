// The cost of training on 100 rows of a table with 64 floats per row: for each optimizer the step
// on a large table beside the step on a small one, taken in turns, and their ratio. In this
// process, or with the tables on a ps:
//   rows
//   leat run --embed local:ps=1,worker=1 -- rows
// A step looks up the rows of the ids it is fed; its loss is the mean of their squares.
#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>
#include <iomanip>
#include <iostream>
#include <memory>
#include <random>

#include "frontends/cpp/cluster.h"
#include "frontends/cpp/nn/nn.h"
#include "frontends/cpp/session.h"
#include "frontends/cpp/strategies/parameter_server.h"

namespace {

using namespace leat;
using Clock = std::chrono::steady_clock;

constexpr int64_t width = 64, batch = 100;

struct Flags {
  int64_t large = 1'000'000, small = 10'000;
  double seconds = 2;
};

std::unique_ptr<Optimizer> make_optimizer(const std::string& name) {
  if (name == "Sgd") return std::make_unique<Sgd>(0.1);
  if (name == "Momentum") return std::make_unique<Momentum>(0.1);
  if (name == "Adagrad") return std::make_unique<Adagrad>(0.1);
  if (name == "Ftrl") return std::make_unique<Ftrl>(0.1);
  return std::make_unique<Adam>(0.1, AdamOptions{.lazy = true});
}

// A program that trains a table.
class Training {
 public:
  Training(const Cluster& cluster, const std::string& optimizer, int64_t rows) : rows_(rows) {
    const auto& task = cluster.task();
    if (task) {
      const ParameterServer strategy(cluster.spec());
      const ReplicaScope on_worker = strategy.replica(graph_, task->index);
      build(optimizer);
    } else {
      build(optimizer);
    }
    SessionOptions options;
    options.target = cluster.target();
    session_ = std::make_unique<Session>(graph_, options);
    session_->run({initialize_variables(graph_)});
    step_ = std::make_unique<Callable>(session_->prepare({ids_}, {}, {*train_}));
  }

  double seconds_of_a_step() {
    Tensor ids(i32, {batch});
    for (int32_t& id : ids.span<int32_t>())
      id = static_cast<int32_t>(random_() % static_cast<uint64_t>(rows_));
    const auto before = Clock::now();
    step_->run({&ids, 1}, fetches_);
    return std::chrono::duration<double>(Clock::now() - before).count();
  }

 private:
  void build(const std::string& optimizer) {
    ids_ = placeholder(graph_, "ids", i32, {batch});
    // Tables of both sizes may be on one ps.
    const Output read = nn::embedding(ids_, rows_, width,
                                      {.initializer = initializers::constant(0.5),
                                       .name = concat("table_", optimizer, "_", rows_)});
    train_ = &make_optimizer(optimizer)->minimize(mean(square(read)));
  }

  const int64_t rows_;
  Graph graph_;
  Output ids_;
  Node* train_ = nullptr;
  std::unique_ptr<Session> session_;
  std::unique_ptr<Callable> step_;
  std::mt19937_64 random_{7};
  std::vector<Tensor> fetches_;
};

double median(std::vector<double>& values) {
  std::nth_element(values.begin(), values.begin() + std::ssize(values) / 2, values.end());
  return values[values.size() / 2];
}

void run(const Flags& flags) {
  const Cluster cluster = join_cluster();
  std::cout << "optimizer        rows " << std::setw(9) << flags.large << std::setw(12)
            << flags.small << "   ratio of medians" << std::endl;
  for (const std::string name : {"Sgd", "Momentum", "Adagrad", "Ftrl", "lazy Adam"}) {
    const std::string key = name == "lazy Adam" ? "Adam" : name;
    Training large(cluster, key, flags.large), small(cluster, key, flags.small);
    std::vector<double> of_large, of_small;
    const auto end = Clock::now() + std::chrono::duration<double>(flags.seconds);
    while (Clock::now() < end) {
      of_large.push_back(large.seconds_of_a_step());
      of_small.push_back(small.seconds_of_a_step());
    }
    const double l = median(of_large), s = median(of_small);
    std::cout << std::left << std::setw(18) << name << std::right << std::fixed
              << std::setprecision(1) << std::setw(9) << l * 1e6 << " µs" << std::setw(9) << s * 1e6
              << " µs" << std::setprecision(2) << std::setw(9) << l / s << std::endl;
  }
}

}  // namespace

int main(int argc, char** argv) {
  Flags flags;
  CLI::App app{"What a step on 100 rows of a table costs, by the size of the table."};
  app.add_option("--large", flags.large, "rows of the large table")
      ->check(CLI::PositiveNumber)
      ->capture_default_str();
  app.add_option("--small", flags.small, "rows of the small table")
      ->check(CLI::PositiveNumber)
      ->capture_default_str();
  app.add_option("--seconds", flags.seconds, "how long to measure each optimizer")
      ->check(CLI::PositiveNumber)
      ->capture_default_str();
  CLI11_PARSE(app, argc, argv);
  try {
    run(flags);
    return 0;
  } catch (const Error& error) {
    std::cerr << error.status().to_string() << std::endl;
    return 1;
  }
}
