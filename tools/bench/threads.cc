// What two threads (or more) bring to single nodes, by the traces of one graph's steps: each node
// has inputs of at least a megabyte, or much work. Sessions of one thread and of many take turns.
//
//   build/release/bin/bench/threads
//   build/release/bin/bench/threads --busy      while another process computes on the last core
#include <leat/leat.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <map>
#include <optional>
#include <thread>

#include "tools/bench/busy_core.h"

namespace {

using namespace leat;

struct Flags {
  int threads = 2, rounds = 15;
  std::string only;
  bool busy = false;
};

// Everything to measure, by the names of the nodes.
class Nodes {
 public:
  explicit Nodes(Graph& graph) : g_(graph) {
    add_convolutions();
    add_products();
    add_passes();
  }

  const std::vector<const Node*>& all() const { return all_; }

 private:
  Output numbers(const Shape& shape) {
    Output& held = held_[concat(shape)];
    if (held.node == nullptr) {
      held = variable(g_, concat("held_", held_.size()), shape,
                      initializers::random_uniform(0.1, 1.0));
    }
    return held;
  }

  void add(const std::string& name, const std::string& type, const std::vector<Output>& inputs,
           const AttrMap& attrs = {}) {
    all_.push_back(&g_.add({.op = type, .name = name, .inputs = inputs, .attrs = attrs}));
  }

  void add_convolutions() {
    struct Case {
      int64_t batch, size, in, out, kernel, stride;  // out 0: depthwise
    };
    for (const Case& c : std::vector<Case>{
             {8, 112, 3, 32, 7, 2},   {8, 56, 64, 64, 1, 1},   {8, 56, 64, 64, 3, 1},
             {8, 56, 256, 64, 1, 1},  {8, 28, 128, 128, 3, 2}, {8, 14, 256, 256, 3, 1},
             {8, 7, 512, 2048, 1, 1}, {64, 28, 1, 32, 5, 1},   {64, 14, 32, 64, 5, 1},
             {64, 32, 16, 16, 3, 1},  {64, 8, 64, 64, 3, 1},   {1, 56, 64, 64, 3, 1},
             {1, 14, 256, 256, 3, 1}, {8, 56, 96, 0, 3, 1},    {8, 28, 192, 0, 3, 2},
             {8, 14, 384, 0, 5, 1},   {8, 28, 128, 512, 1, 1}, {8, 14, 512, 512, 1, 1},
             {1, 14, 512, 512, 1, 1}, {8, 7, 512, 512, 3, 1}}) {
      const int64_t out_size = (c.size + c.stride - 1) / c.stride;
      const Shape image = {c.batch, c.size, c.size, c.in},
                  filter_shape = {c.kernel, c.kernel, c.in, std::max<int64_t>(c.out, 1)};
      const Output x = numbers(image), filter = numbers(filter_shape),
                   dy = numbers({c.batch, out_size, out_size, c.out == 0 ? c.in : c.out});
      const std::string kind = c.out == 0 ? "DepthwiseConv2dNative" : "Conv2D",
                        name = concat(c.batch, "x", c.size, "x", c.in, "_",
                                      c.out == 0 ? "depthwise" : concat(c.out), "_k", c.kernel);
      const AttrMap window = {{"strides", std::vector<int64_t>{1, c.stride, c.stride, 1}},
                              {"padding", "SAME"}};
      const auto extents = [&](const Shape& shape) {
        const auto dims = shape.dims();
        return constant(g_, std::vector<int32_t>(dims.begin(), dims.end()));
      };
      add(concat("conv/", name, "/value"), kind, {x, filter}, window);
      add(concat("conv/", name, "/input"), kind + "BackpropInput", {extents(image), filter, dy},
          window);
      add(concat("conv/", name, "/filter"), kind + "BackpropFilter", {x, extents(filter_shape), dy},
          window);
    }
  }

  void add_products() {
    struct Case {
      int64_t m, n, k;
    };
    for (const auto& [m, n, k] : std::vector<Case>{{64, 1024, 384},
                                                   {64, 512, 784},
                                                   {100, 500, 784},
                                                   {256, 256, 256},
                                                   {512, 512, 512},
                                                   {1024, 1024, 1024},
                                                   {2048, 256, 256},
                                                   {256, 256, 2048},
                                                   {1, 1024, 1024},
                                                   {1, 4096, 4096}}) {
      const std::string name = concat("product/", m, "x", n, "x", k);
      add(name, "MatMul", {numbers({m, k}), numbers({k, n})});
      add(name + "/ta", "MatMul", {numbers({k, m}), numbers({k, n})}, {{"transpose_a", true}});
      add(name + "/tb", "MatMul", {numbers({m, k}), numbers({n, k})}, {{"transpose_b", true}});
    }
    add("product/64_of_128x128x64", "BatchMatMulV2",
        {numbers({64, 128, 64}), numbers({64, 64, 128})});
  }

  void add_passes() {
    const Output x = numbers({1024, 1024}), y = numbers({1024, 1024}), row = numbers({1024}),
                 image = numbers({64, 32, 32, 16}), channel = numbers({16});
    const Output zero = constant(g_, std::vector<int32_t>{0}),
                 one = constant(g_, std::vector<int32_t>{1}),
                 both = constant(g_, std::vector<int32_t>{0, 1}),
                 turned = constant(g_, std::vector<int32_t>{1, 0});
    for (const char* type : {"Neg", "Exp", "Tanh", "Relu", "Softmax", "LogSoftmax", "L2Loss"})
      add(concat("pass/", type), type, {x});
    for (const char* type : {"Mul", "Maximum", "ReluGrad", "SquaredDifference"})
      add(concat("pass/", type), type, {x, y});
    add("pass/Mul_row", "Mul", {x, row});
    add("pass/BiasAdd", "BiasAdd", {x, row});
    add("pass/BiasAddGrad", "BiasAddGrad", {x});
    add("pass/BiasAddGrad_images", "BiasAddGrad", {image});
    add("pass/Transpose", "Transpose", {x, turned});
    add("pass/Transpose_images", "Transpose",
        {image, constant(g_, std::vector<int32_t>{0, 3, 1, 2})});
    add("pass/Cast_half", "Cast", {x}, {{"DstT", f16}});
    add("pass/Concat_rows", "ConcatV2", {x, y, constant(g_, 0)});
    add("pass/Concat_columns", "ConcatV2", {x, y, constant(g_, 1)});
    add("pass/AddN", "AddN", {x, y, x});
    for (const char* type : {"Sum", "Max", "Mean"}) {
      add(concat("reduction/", type, "_all"), type, {x, both});
      add(concat("reduction/", type, "_rows"), type, {x, one});
      add(concat("reduction/", type, "_columns"), type, {x, zero});
    }
    add("reduction/ArgMax_rows", "ArgMax", {x, constant(g_, 1)});
    add("reduction/ArgMax_columns", "ArgMax", {x, constant(g_, 0)});
    add("reduction/TopK", "TopKV2", {x, constant(g_, 10)});
    const AttrMap window = {{"ksize", std::vector<int64_t>{1, 2, 2, 1}},
                            {"strides", std::vector<int64_t>{1, 2, 2, 1}},
                            {"padding", "VALID"}};
    const Output small = numbers({64, 16, 16, 16});
    add("pool/MaxPool", "MaxPool", {image}, window);
    add("pool/AvgPool", "AvgPool", {image}, window);
    add("pool/MaxPoolGrad", "MaxPoolGrad", {image, small, small}, window);
    add("norm/FusedBatchNormV3", "FusedBatchNormV3", {image, channel, channel, channel, channel});
    add("norm/FusedBatchNormGradV3", "FusedBatchNormGradV3",
        {image, image, channel, channel, channel, channel});
  }

  Graph& g_;
  std::map<std::string, Output> held_;
  std::vector<const Node*> all_;
};

// How much faster `threads` threads do work that they share nothing of: what the machine gives at
// the time. Two cores of a virtual machine may be one core of the machine below it.
double independent_ratio(int threads) {
  const auto seconds = [](int count) {
    std::vector<std::thread> all;
    const auto start = std::chrono::steady_clock::now();
    for (int i = 0; i < count; ++i) {
      all.emplace_back([] {
        constexpr int64_t n = 64 * 256;
        std::vector<float> x(n, 0.5F), y(n, 1.0F);
        for (int repeat = 0; repeat < 3000; ++repeat) {
          for (int64_t j = 0; j < n; ++j) y[j] = y[j] * x[j] + 0.5F;
          asm volatile("" : : "r"(y.data()) : "memory");
        }
      });
    }
    for (std::thread& thread : all) thread.join();
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  };
  seconds(1);
  return seconds(1) * threads / seconds(threads);
}

// Times of each node in µs, over all rounds.
class Times {
 public:
  // The nodes run as they are: simplified or fused ones would be others.
  Times(const Graph& graph, int threads, const std::vector<const Node*>& nodes)
      : nodes_(nodes), session_(graph, {.simplify = false, .threads = threads}) {
    session_.initialize();
  }

  void take() {
    for (const Node* node : nodes_) {
      for (int i = 0; i < 3; ++i) {
        RunMetadata metadata;
        session_.run({}, {}, {*node}, {.trace = true}, &metadata);
        for (const TraceEvent& event : metadata.events) {
          if (event.node == node->name && i > 0)
            times_[event.node].push_back(static_cast<double>(event.end_ns - event.start_ns) * 1e-3);
        }
      }
    }
  }

  double median(const std::string& node) {
    std::vector<double>& all = times_[node];
    check(!all.empty(), "node ", node, " is not in the traces");
    std::sort(all.begin(), all.end());
    return all[all.size() / 2];
  }

 private:
  const std::vector<const Node*>& nodes_;
  Session session_;
  std::map<std::string, std::vector<double>> times_;
};

void run(const Flags& flags) {
  Graph graph;
  const Nodes all(graph);
  std::vector<const Node*> nodes;
  for (const Node* node : all.all())
    if (node->name.find(flags.only) != std::string::npos) nodes.push_back(node);
  check(!nodes.empty(), "no node's name has the part '", flags.only, "'");
  Times one(graph, 1, nodes), many(graph, flags.threads, nodes);
  std::optional<bench::BusyCore> busy;
  if (flags.busy) busy.emplace();
  std::vector<double> independent;
  for (int round = 0; round < flags.rounds; ++round) {
    one.take();
    many.take();
    independent.push_back(independent_ratio(flags.threads));
  }
  std::sort(independent.begin(), independent.end());
  std::printf("%-48s %10s %10s %6s\n", "medians", "1 thread",
              concat(flags.threads, " threads").c_str(), "ratio");
  std::vector<double> ratios;
  for (const Node* node : nodes) {
    const double single = one.median(node->name), several = many.median(node->name);
    ratios.push_back(single / several);
    std::printf("%-48s %7.0f µs %7.0f µs %6.2f\n", node->name.c_str(), single, several,
                ratios.back());
  }
  std::sort(ratios.begin(), ratios.end());
  if (!flags.busy) {
    std::printf("%-48s %10s %10s %6.2f\n", "threads that share nothing", "", "",
                independent[independent.size() / 2]);
  }
  std::printf("%zu nodes: ratio %.2f to %.2f, median %.2f\n", ratios.size(), ratios.front(),
              ratios.back(), ratios[ratios.size() / 2]);
}

}  // namespace

int main(int argc, char** argv) {
  Flags flags;
  CLI::App app{"What threads bring to single nodes."};
  app.add_option("--threads", flags.threads)->check(CLI::Range(2, 1023))->capture_default_str();
  app.add_option("--rounds", flags.rounds)->check(CLI::PositiveNumber)->capture_default_str();
  app.add_option("--only", flags.only, "only nodes whose names have this part");
  app.add_flag("--busy", flags.busy, "while another process computes on the last core");
  CLI11_PARSE(app, argc, argv);
  try {
    run(flags);
    return 0;
  } catch (const Error& error) {
    std::fprintf(stderr, "%s\n", error.status().to_string().c_str());
    return 1;
  }
}
