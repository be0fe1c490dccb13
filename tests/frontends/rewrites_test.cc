// Steps give the same values with and without the rewrites of the pass simplify, and run less.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <limits>
#include <optional>
#include <random>

#include "frontends/cpp/control_flow/while_loop.h"
#include "frontends/cpp/session.h"
#include "frontends/cpp/variables.h"
#include "graph/gradient.h"
#include "graph/ops.h"

namespace leat {
namespace {

constexpr float inf = std::numeric_limits<float>::infinity();
constexpr float nan = std::numeric_limits<float>::quiet_NaN();

// Random nodes of what the rules know, all float[4,4], many of which are used more than once.
class RandomGraph {
 public:
  explicit RandomGraph(uint32_t seed) : random_(seed) {
    pool_ = {placeholder(graph, "a", f32, {4, 4}), placeholder(graph, "b", f32, {4, 4})};
    for (int i = 0; i < 60; ++i) pool_.push_back(next());
    for (int i = 0; i < 8; ++i) fetches.push_back(pool_[2 + below(60)]);
    fetches.push_back(pool_.back());
  }

  Graph graph;
  std::vector<Output> fetches;

 private:
  int below(int end) { return static_cast<int>(random_() % end); }
  Output any_value() { return pool_[below(static_cast<int>(pool_.size()))]; }
  // Often the last one, so that rules find their patterns.
  Output recent() {
    const int size = static_cast<int>(pool_.size());
    return pool_[size - 1 - below(std::min(size, 3))];
  }
  Output number() {
    const float values[] = {0.0F, -0.0F, 1.0F, 2.0F, 0.5F, 3.0F, -4.0F};
    const float value = values[below(7)];
    if (below(3) > 0) return constant(graph, value);
    return constant(graph, Tensor::of<float>({4}, {value, value, value, value}));
  }
  Output power() { return constant(graph, below(2) == 0 ? 0.0F : 1.0F); }
  Output axes(std::vector<int32_t> values) { return constant(graph, Tensor::of(values)); }

  Output next() {
    std::optional<ControlScope> after;
    if (below(8) == 0) after.emplace(graph, std::vector<Output>{any_value()});
    const Output x = recent();
    switch (below(20)) {
      case 0:
      case 1:
        return op("Mul", {x, number()});
      case 2:
        return op("AddV2", {number(), x});
      case 3:
        return op("Sub", {x, number()});
      case 4:
        return op("Sub", {number(), x});
      case 5:
      case 6:
        return op("RealDiv", {x, number()});
      case 7:
        return op("Pow", {x, power()});
      case 8:
      case 9:
        return op("Neg", {x});
      case 10:
      case 11:
        return op("AddV2", {any_value(), x});
      case 12:
        return op("Sub", {x, any_value()});
      case 13:
        return op("AddN", {any_value(), x, any_value()});
      case 14:
        return op("Square", {x});
      case 15:
        return op("Transpose", {x, axes({1, 0})});
      case 16:
        return op("Reshape", {op("Reshape", {x, axes({-1})}), axes({4, 4})});
      case 17:
        return cast(cast(x, f64), f32);
      case 18:
        return op("Sum", {x, axes({})});
      default:
        return tanh(x);
    }
  }

  std::mt19937 random_;
  std::vector<Output> pool_;
};

void expect_equal(const Tensor& a, const Tensor& b) {
  ASSERT_EQ(a.shape(), b.shape());
  for (int64_t i = 0; i < a.elements(); ++i) {
    const float p = a.data<float>()[i], q = b.data<float>()[i];
    if (p != p && q != q) continue;
    ASSERT_EQ(std::memcmp(&p, &q, sizeof(float)), 0) << "element " << i << ": " << p << ", " << q;
  }
}

int count(const RunMetadata& metadata, std::string_view op) {
  return static_cast<int>(
      std::ranges::count_if(metadata.events, [&](const auto& event) { return event.op == op; }));
}

TEST(Rewrites, KeepTheValuesOfRandomGraphs) {
  const Tensor a = Tensor::of<float>(
      {4, 4}, {0.0F, -0.0F, inf, -inf, nan, 1.5F, -2.0F, 3.25F, 1e-3F, -7, 100, 8, -1, 1, 2, 0.3F});
  const Tensor b = Tensor::of<float>(
      {4, 4}, {-0.0F, 1, 2, inf, 5, nan, 0.7F, -0.1F, 9, -9, 0.0F, -1, 4, 1e20F, -1e-20F, 6});
  size_t saved = 0;
  for (uint32_t seed = 0; seed < 60; ++seed) {
    SCOPED_TRACE(seed);
    const RandomGraph random(seed);
    Session all(random.graph), structure(random.graph, {.simplify_arithmetic = false}),
        plain(random.graph, {.simplify = false});
    const Feeds feeds = {{random.graph.output("a"), a}, {random.graph.output("b"), b}};
    RunMetadata with, without;
    const std::vector<Tensor> now = all.run(feeds, random.fetches, {}, {.trace = true}, &with);
    const std::vector<Tensor> before =
        plain.run(feeds, random.fetches, {}, {.trace = true}, &without);
    const std::vector<Tensor> between = structure.run(feeds, random.fetches);
    for (size_t i = 0; i < now.size(); ++i) {
      SCOPED_TRACE(random.fetches[i].name());
      expect_equal(now[i], before[i]);
      expect_equal(between[i], before[i]);
    }
    ASSERT_LE(with.events.size(), without.events.size());
    saved += without.events.size() - with.events.size();
  }
  EXPECT_GT(saved, 60u * 5);
}

TEST(Rewrites, ComputeInvariantsOfALoopOnce) {
  Graph g;
  const Output w = placeholder(g, "w", f32, {16, 16}), n = placeholder(g, "n", i32, {});
  const auto [i, x] = while_loop([&](Output i, Output) { return i < n; },
                                 [&](Output i, Output x) {
                                   return std::tuple{i + 1, matmul(x, tanh(matmul(w, w)))};
                                 },
                                 0, ones_like(w));
  Tensor weights(f32, {16, 16});
  for (int k = 0; k < 256; ++k) weights.data<float>()[k] = 0.01F * static_cast<float>(k % 17 - 8);
  Session all(g, {.fuse = false}), plain(g, {.simplify = false});  // a node each
  for (const int iterations : {0, 1, 5}) {
    SCOPED_TRACE(iterations);
    const Feeds feeds = {{w, weights}, {n, Tensor::scalar(iterations)}};
    RunMetadata with, without;
    const std::vector<Output> fetches = {x};
    expect_equal(all.run(feeds, fetches, {}, {.trace = true}, &with)[0],
                 plain.run(feeds, fetches, {}, {.trace = true}, &without)[0]);
    EXPECT_EQ(count(with, "MatMul"), iterations + 1);
    EXPECT_EQ(count(without, "MatMul"), 2 * iterations);
    EXPECT_EQ(count(with, "Tanh"), 1);
  }
}

TEST(Rewrites, TransposeAMatrixOnceForALoop) {
  constexpr int64_t rows = 32, n = 128;
  Graph g;
  const Output w = placeholder(g, "w", f32, {n, n}), start = placeholder(g, "x", f32, {rows, n});
  const auto [i, x] =
      while_loop([&](Output i, Output) { return i < 2; },
                 [&](Output i, Output x) {
                   const Output y = reshape(x, {rows, n});
                   return std::tuple{i + 1, matmul(y, w, {.transpose_b = true}) + relu(y)};
                 },
                 0, start);
  Tensor weights(f32, {n, n}), first(f32, {rows, n});  // whole numbers, so that sums are exact
  for (int64_t k = 0; k < n * n; ++k) weights.data<float>()[k] = static_cast<float>(k % 5 - 2);
  for (int64_t k = 0; k < rows * n; ++k) first.data<float>()[k] = static_cast<float>(k % 3 - 1);
  Session all(g, {.fuse = false}), plain(g, {.simplify = false});
  RunMetadata with, without;
  const Feeds feeds = {{w, weights}, {start, first}};
  expect_equal(all.run(feeds, std::vector<Output>{x}, {}, {.trace = true}, &with)[0],
               plain.run(feeds, std::vector<Output>{x}, {}, {.trace = true}, &without)[0]);
  EXPECT_EQ(count(with, "Transpose"), 1);
  EXPECT_EQ(count(with, "MatMul"), 2);
  EXPECT_EQ(count(without, "Transpose"), 0);
}

// As TensorFlow's minimize() waits for all gradients of an op before it uses one, and so for the
// gradient of the first convolution to the images.
TEST(Rewrites, DoNotComputeGradientsThatNobodyReads) {
  Graph g;
  const Output images = placeholder(g, "images", f32, {2, 8, 8, 1});
  const Output filter = variable(g, "filter", Tensor::of<float>({2, 2, 1, 1}, {1, 2, 3, 4}));
  const Output loss = sum(relu(conv2d(images, filter)));
  const std::vector<Output> slopes = gradients(loss, {images, filter});
  Output update;
  {
    const ControlScope after(g, slopes);
    update = assign_sub(filter, slopes[1]);
  }
  Tensor pixels(f32, {2, 8, 8, 1});
  for (int k = 0; k < 128; ++k) pixels.data<float>()[k] = static_cast<float>(k % 7 - 3);
  std::vector<Tensor> after;
  for (const bool simplify : {true, false}) {
    Session session(g, {.simplify = simplify});
    session.run({initialize_variables(g)});
    RunMetadata ran;
    session.run({{images, pixels}}, std::vector<Output>{}, {*update.node}, {.trace = true}, &ran);
    EXPECT_EQ(count(ran, "Conv2DBackpropInput"), simplify ? 0 : 1);
    EXPECT_EQ(count(ran, "Conv2DBackpropFilter"), 1);
    after.push_back(session.run({filter})[0]);
  }
  expect_equal(after[0], after[1]);
}

}  // namespace
}  // namespace leat
