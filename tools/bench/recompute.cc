// What --recompute saves and costs: memory and time of a training step of deep networks with each
// of its values, steps taken in turns.
//   recompute --layers 24 --seconds 10
#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>
#include <functional>
#include <iomanip>
#include <iostream>
#include <memory>
#include <string>
#include <vector>

#include "frontends/cpp/nn/nn.h"
#include "frontends/cpp/optimizers/optimizers.h"
#include "frontends/cpp/session.h"
#include "runtime/local_session.h"
#include "runtime/program.h"
#include "tools/bench/numbers.h"

namespace {

using namespace leat;
using Clock = std::chrono::steady_clock;

struct Flags {
  int layers = 24;
  int64_t width = 512, batch = 1024;                // of the perceptron
  int64_t size = 128, length = 64, sequences = 16;  // of the transformer
  double seconds = 10;
  int threads = 0;
};

Output random_values(Graph& graph, const Shape& shape) {
  return variable(graph, "x", bench::noise(shape, 7), {.trainable = false});
}

Output perceptron(Graph& graph, const Flags& flags) {
  Output x = random_values(graph, {flags.batch, flags.width});
  for (int i = 0; i < flags.layers; ++i) x = relu(nn::dense(x, flags.width));
  return x;
}

Output transformer(Graph& graph, const Flags& flags) {
  Output x = random_values(graph, {flags.sequences, flags.length, flags.size});
  for (int i = 0; i < flags.layers; ++i) {
    const Output a = nn::layer_norm(x);
    x = x + nn::multi_head_attention(a, a, a, {.heads = 4, .causal = true});
    x = x + nn::dense(gelu(nn::dense(nn::layer_norm(x), 4 * flags.size)), flags.size);
  }
  return x;
}

// So that every session draws the same numbers.
void set_seeds(Graph& graph) {
  for (const auto& node : graph.nodes()) {
    if (node->op->is_stateful && node->view().has("seed"))
      node->attrs["seed"] = int64_t{node->id + 1};
  }
}

// A session that trains a model.
class Training {
 public:
  Training(const Graph& graph, const Node& initialize, const Output& loss, const Node& train,
           const Flags& flags, Recompute recompute)
      : session_({.recompute = recompute, .threads = flags.threads}) {
    session_.extend(graph);
    session_.run({}, {}, std::vector<std::string>{initialize.name});
    callable_ = session_.make_callable({.fetches = {loss.name()}, .targets = {train.name}});
    step();
    for (const auto& program : session_.registered_graph(callable_)->programs()) {
      for (size_t i = 0; i < program->plan().segments.size(); ++i) {
        const Segment::Counts counts = program->segment(static_cast<int>(i)).counts();
        arena_bytes_ += counts.arena_bytes;
        max_live_bytes_ += counts.max_live_bytes;
      }
    }
  }

  // In seconds.
  double step() {
    const auto before = Clock::now();
    session_.run_callable(callable_, {}, fetches_);
    return std::chrono::duration<double>(Clock::now() - before).count();
  }

  size_t arena_bytes() const { return arena_bytes_; }
  size_t max_live_bytes() const { return max_live_bytes_; }
  float loss() const { return fetches_[0].item<float>(); }

  std::vector<double> times;

 private:
  LocalSession session_;
  SessionInterface::CallableHandle callable_;
  std::vector<Tensor> fetches_;
  size_t arena_bytes_ = 0, max_live_bytes_ = 0;
};

double median(std::vector<double> values) {
  std::nth_element(values.begin(), values.begin() + std::ssize(values) / 2, values.end());
  return values[values.size() / 2];
}

void measure(const char* name, const Output& y, const Flags& flags) {
  const Output loss = mean(square(y));
  const Node& train = Sgd{1e-3}.minimize(loss);
  const Node& initialize = initialize_variables(y.graph());
  set_seeds(y.graph());
  const std::array ways = {"none", "layers", "auto"};
  std::vector<std::unique_ptr<Training>> trainings;
  for (const char* way : ways)
    trainings.push_back(std::make_unique<Training>(y.graph(), initialize, loss, train, flags,
                                                   recompute_from_text(way)));
  const auto end = Clock::now() + std::chrono::duration<double>(flags.seconds);
  while (Clock::now() < end) {
    for (const auto& training : trainings) training->times.push_back(training->step());
  }
  const Training& whole = *trainings.front();
  for (size_t i = 0; i < ways.size(); ++i) {
    const Training& training = *trainings[i];
    check(training.loss() == whole.loss(), name, ": the loss with ", ways[i], " is ",
          training.loss(), ", without recomputation ", whole.loss());
    const auto ratio = [](auto a, auto b) {
      return static_cast<double>(a) / static_cast<double>(b);
    };
    std::cout << std::left << std::setw(13) << name << std::setw(8) << ways[i] << std::right
              << std::fixed << std::setprecision(2) << std::setw(9)
              << static_cast<double>(training.arena_bytes()) / (1 << 20) << " MiB" << std::setw(8)
              << ratio(training.arena_bytes(), whole.arena_bytes()) << std::setprecision(4)
              << std::setw(13) << ratio(training.arena_bytes(), training.max_live_bytes())
              << std::setprecision(2) << std::setw(9) << 1e3 * median(training.times) << " ms"
              << std::setw(8) << median(training.times) / median(whole.times) << std::setw(9)
              << std::ranges::min(training.times) / std::ranges::min(whole.times) << std::endl;
  }
}

}  // namespace

int main(int argc, char** argv) {
  Flags flags;
  CLI::App app{"What recomputation saves and costs."};
  const auto add = [&](const char* name, auto& value, const char* what) {
    app.add_option(name, value, what)->check(CLI::Range(1, 1'000'000))->capture_default_str();
  };
  add("--layers", flags.layers, "of both networks");
  add("--width", flags.width, "units of a layer of the perceptron");
  add("--batch", flags.batch, "examples of the perceptron");
  add("--size", flags.size, "of the transformer's vectors");
  add("--length", flags.length, "of its sequences");
  add("--sequences", flags.sequences, "of a batch");
  app.add_option("--seconds", flags.seconds, "how long to measure each network")
      ->check(CLI::Range(0.1, 86'400.0))
      ->capture_default_str();
  app.add_option("--threads", flags.threads, "of each session; 0 = one per core")
      ->check(CLI::NonNegativeNumber);
  CLI11_PARSE(app, argc, argv);
  try {
    std::cout << "network      recompute  memory   ratio  / max live     time   ratio  of minima"
              << std::endl;
    Graph mlp, attention;
    measure("perceptron", perceptron(mlp, flags), flags);
    measure("transformer", transformer(attention, flags), flags);
    return 0;
  } catch (const Error& error) {
    std::cerr << error.status().to_string() << std::endl;
    return 1;
  }
}
