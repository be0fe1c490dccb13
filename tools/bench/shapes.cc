// A training step whose batches differ in length, in this process, on one thread: 12 layers of
// attention. What does a step cost whose shapes were never seen, beside the same step again?
//
//   build/release/bin/bench/shapes --first 17 --lengths 60
#include <CLI/CLI.hpp>
#include <chrono>
#include <cstdio>
#include <numeric>
#include <optional>
#include <vector>

#include "frontends/cpp/nn/nn.h"
#include "frontends/cpp/optimizers/optimizers.h"
#include "frontends/cpp/session.h"
#include "tools/bench/numbers.h"

namespace {

using namespace leat;
using bench::noise;

constexpr int64_t batch = 8, width = 64, layers = 12;

// [batch, length, width] times [width, width]
Output each_times(const Output& x, const Output& weights) {
  const Output rows = reshape(x, {-1, width});
  return reshape(matmul(rows, weights), shape_of(x));
}

Output attention(Graph& graph, const Output& h, int64_t layer) {
  const auto weights = [&](const char* name) {
    return variable(graph, concat("layer_", layer, "/", name), {width, width});
  };
  const Output query = each_times(h, weights("query")), key = each_times(h, weights("key"));
  const Output p = softmax(matmul(query, key, {.transpose_b = true}) / 8.0F);
  return h + relu(each_times(matmul(p, h), weights("value")));
}

class Steps {
 public:
  Steps() {
    const Output x = placeholder(graph_, "x", f32, {any, any, width});
    const Output y = placeholder(graph_, "y", i32, {any});
    Output h = x;
    for (int64_t layer = 0; layer < layers; ++layer) h = attention(graph_, h, layer);
    const Output logits = nn::dense(mean(h, {1}), 10);
    const Output loss = mean(nn::softmax_cross_entropy(logits, y));
    Node& train = Sgd(0.01).minimize(loss);
    Node& init = initialize_variables(graph_);
    SessionOptions options;
    options.threads = 1;
    session_.emplace(graph_, options);
    session_->run({init});
    step_.emplace(session_->prepare({x, y}, {loss}, {train}));
  }

  double seconds(int64_t length) {
    Tensor labels(i32, {batch});
    std::iota(labels.data<int32_t>(), labels.data<int32_t>() + batch, 0);
    const std::vector<Tensor> feeds = {noise({batch, length, width}), labels};
    std::vector<Tensor> losses;
    const auto start = std::chrono::steady_clock::now();
    step_->run(feeds, losses);
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  }

 private:
  Graph graph_;
  std::optional<Session> session_;
  std::optional<Callable> step_;
};

double sum(const std::vector<double>& seconds) {
  return std::accumulate(seconds.begin(), seconds.end(), 0.0);
}

}  // namespace

int main(int argc, char** argv) {
  int64_t first = 17, count = 60;
  CLI::App app{"What a step costs whose shapes were never seen."};
  app.add_option("--first", first, "length of the first batch")
      ->check(CLI::Range(2, 10'000))
      ->capture_default_str();
  app.add_option("--lengths", count, "how many lengths, each one longer than the one before")
      ->check(CLI::Range(1, 10'000))
      ->capture_default_str();
  CLI11_PARSE(app, argc, argv);
  Steps steps;
  const double compiled = steps.seconds(first - 1);
  std::vector<double> unseen, again, in_turn;
  for (int64_t i = 0; i < count; ++i) {
    unseen.push_back(steps.seconds(first + i));
    again.push_back(steps.seconds(first + i));
  }
  for (int64_t i = 0; i < count; ++i) in_turn.push_back(steps.seconds(first + i));
  const double steps_of_each = static_cast<double>(count) / 1e3;
  std::printf(
      "first step %.1f ms; %lld lengths, ms a step: never seen %.2f, the same again %.2f, "
      "all in turn %.2f; never seen / again %.2f, in turn / again %.2f\n",
      compiled * 1e3, static_cast<long long>(count), sum(unseen) / steps_of_each,
      sum(again) / steps_of_each, sum(in_turn) / steps_of_each, sum(unseen) / sum(again),
      sum(in_turn) / sum(again));
}
