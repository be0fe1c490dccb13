// The cost of a step in this process, on one thread: the executor by itself (a chain of additions
// of 8 floats), the call (one node), and whole training steps. tools/bench/compare.py compares the
// figures with those of peers.
#include <benchmark/benchmark.h>

#include "frontends/cpp/control_flow/while_loop.h"
#include "frontends/cpp/nn/nn.h"
#include "frontends/cpp/optimizers/optimizers.h"
#include "frontends/cpp/session.h"
#include "tools/bench/numbers.h"

namespace {

using namespace leat;
using bench::noise;

SessionOptions one_thread() {
  SessionOptions out;
  out.threads = 1;
  return out;
}

Tensor filled(const Shape& shape, float value) {
  Tensor out(f32, shape);
  std::fill_n(out.data<float>(), out.elements(), value);
  return out;
}

// Of as many as the benchmark's argument says.
benchmark::Counter nanoseconds_each(const benchmark::State& state) {
  return {static_cast<double>(state.iterations() * state.range(0)) * 1e-9,
          benchmark::Counter::kIsRate | benchmark::Counter::kInvert};
}

void chain_of_adds(benchmark::State& state) {
  Graph graph;
  const Output x = placeholder(graph, "x", f32, {8});
  Output h = x;
  for (int64_t i = 0; i < state.range(0); ++i) h = h + x;
  SessionOptions options = one_thread();
  options.simplify = false;
  Session session(graph, options);
  const Callable run = session.prepare({x}, {h});
  const Tensor feed = filled({8}, 1e-3F);
  std::vector<Tensor> fetches;
  for (auto _ : state) run.run({&feed, 1}, fetches);
  state.counters["ns_per_node"] = nanoseconds_each(state);
}
BENCHMARK(chain_of_adds)->Arg(1)->Arg(1000)->Arg(10000);

void run_of_one_node(benchmark::State& state) {
  Graph graph;
  const Output x = placeholder(graph, "x", f32, {8});
  const Output y = x + x;
  Session session(graph, one_thread());
  const Tensor feed = filled({8}, 1.0F);
  for (auto _ : state) benchmark::DoNotOptimize(session.run({{x, feed}}, std::vector<Output>{y}));
}
BENCHMARK(run_of_one_node);

// A while loop whose body is a chain of ten additions of 8 floats. Unfused, as ten nodes.
void loop_of_ten_adds(benchmark::State& state) {
  Graph graph;
  const Output x = placeholder(graph, "x", f32, {8});
  const auto [i, h] =
      while_loop([&](Output i, Output) { return i < static_cast<int>(state.range(0)); },
                 [&](Output i, Output h) {
                   for (int n = 0; n < 10; ++n) h = h + x;
                   return std::pair(i + 1, h);
                 },
                 0, x);
  SessionOptions options = one_thread();
  options.simplify_arithmetic = options.fuse = false;
  Session session(graph, options);
  const Callable run = session.prepare({x}, {h});
  const Tensor feed = filled({8}, 1e-3F);
  std::vector<Tensor> fetches;
  for (auto _ : state) run.run({&feed, 1}, fetches);
  state.counters["ns_per_iteration"] = nanoseconds_each(state);
}
BENCHMARK(loop_of_ten_adds)->Arg(1000);

void mlp_train_step(benchmark::State& state) {
  const int64_t batch = state.range(0);
  Graph graph;
  const Output images = placeholder(graph, "images", f32, {any, 784});
  const Output labels = placeholder(graph, "labels", i32, {any});
  Output hidden = nn::dense(images, 256, {.activation = relu});
  hidden = nn::dense(hidden, 128, {.activation = relu});
  const Output logits = nn::dense(hidden, 10);
  const Output loss = mean(nn::softmax_cross_entropy(logits, labels));
  Node& train = Sgd(0.01).minimize(loss);
  Node& init = initialize_variables(graph);
  Session session(graph, one_thread());
  session.run({init});
  const Callable step = session.prepare({images, labels}, {loss}, {train});
  Tensor classes(i32, {batch});
  for (int64_t i = 0; i < batch; ++i) classes.data<int32_t>()[i] = static_cast<int32_t>(i % 10);
  const std::vector<Tensor> feeds = {noise({batch, 784}), classes};
  std::vector<Tensor> fetches;
  for (auto _ : state) step.run(feeds, fetches);
  state.counters["samples_per_s"] = benchmark::Counter(
      static_cast<double>(state.iterations() * batch), benchmark::Counter::kIsRate);
}
BENCHMARK(mlp_train_step)->Arg(1)->Arg(64);

}  // namespace

BENCHMARK_MAIN();
