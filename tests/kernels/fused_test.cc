// _Fused gives what its members give one by one, to the bit, whatever the shapes.
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <map>
#include <random>

#include "graph/evaluate.h"
#include "graph/fused.h"
#include "graph/passes/pipeline.h"
#include "graph/text.h"

namespace leat {
namespace {

using Values = std::map<std::string, Tensor>;

Tensor random_tensor(DType dtype, const Shape& shape, std::mt19937& random) {
  Tensor out(dtype, shape);
  std::normal_distribution<float> normal;
  for (int64_t i = 0; i < out.elements(); ++i) {
    const float value = normal(random);
    if (dtype == DType::f32) out.data<float>()[i] = value;
    if (dtype == DType::f64) out.data<double>()[i] = value;
    if (dtype == DType::f16) out.data<half>()[i] = half(value);
    if (dtype == DType::bf16) out.data<bfloat16>()[i] = bfloat16(value);
    if (dtype == DType::boolean) out.data<bool>()[i] = value > 0;
  }
  return out;
}

double number(const Tensor& tensor, int64_t i) {
  if (tensor.dtype() == DType::f64) return tensor.data<double>()[i];
  if (tensor.dtype() == DType::bf16) return static_cast<float>(tensor.data<bfloat16>()[i]);
  return tensor.data<float>()[i];
}

// The values of all endpoints.
Values run(const Graph& graph, const Values& feeds, const std::vector<std::string>& fetches) {
  std::map<const Node*, std::vector<Tensor>> made;
  for (const auto& node : graph.nodes()) {
    if (node->is("_Feed")) {
      made[node.get()] = {feeds.at(node->name)};
      continue;
    }
    std::vector<Tensor> inputs;
    for (const Output& input : node->inputs) inputs.push_back(made.at(input.node)[input.index]);
    made[node.get()] = evaluate(*node, inputs);
  }
  Values out;
  for (const std::string& fetch : fetches) {
    const Output output = graph.output(fetch);
    out[fetch] = made.at(output.node)[output.index];
  }
  return out;
}

// The text behind the feeds gives the same with and without fuse(), which makes so many nodes of
// it. `tolerance`, relative: where a kernel's vectors reach from row to row; else the bits are
// equal.
void expect_equal(const std::string& text, std::vector<std::string> fetches, const Values& feeds,
                  size_t fused_nodes = 1, double tolerance = 0) {
  SCOPED_TRACE(text);
  std::string lines;
  for (const auto& [name, value] : feeds) {
    lines += concat(name, " = _Feed(dtype=", value.dtype(), ", name='", name,
                    ":0', shape=", value.shape(), ")\n");
  }
  const auto placed = [&] {
    Graph graph = parse(lines + text);
    for (const auto& node : graph.nodes())
      node->assigned_device = DeviceName::parse("/job:localhost/replica:0/task:0/device:CPU:0");
    return graph;
  };
  const Values wanted = run(placed(), feeds, fetches);
  Graph graph = placed();
  fuse(graph, {.fetches = fetches}, {});
  size_t found = 0;
  for (const auto& node : graph.nodes()) found += node->is("_Fused");
  EXPECT_EQ(found, fused_nodes);
  for (const auto& [fetch, value] : run(graph, feeds, fetches)) {
    const Tensor& other = wanted.at(fetch);
    ASSERT_EQ(value.shape(), other.shape()) << fetch;
    if (tolerance == 0) {
      EXPECT_EQ(std::memcmp(value.raw(), other.raw(), value.bytes()), 0) << fetch;
      continue;
    }
    for (int64_t i = 0; i < value.elements(); ++i) {
      const double wanted_element = number(other, i);
      ASSERT_NEAR(number(value, i), wanted_element, tolerance * (1 + std::abs(wanted_element)))
          << fetch << " " << i;
    }
  }
}

TEST(Fused, GivesWhatItsMembersGive) {
  std::mt19937 random(1);
  for (const DType dtype : {DType::f32, DType::f64, DType::f16, DType::bf16}) {
    for (const Shape& shape : {Shape{2'500, 2}, Shape{3, 100}, Shape{100, 33}, Shape{1, 2'049},
                               Shape{7, 5, 11}, Shape{2, 70'000}}) {
      SCOPED_TRACE(concat(dtype, shape));
      const Shape row{shape[shape.rank() - 1]};
      const Values feeds = {{"x", random_tensor(dtype, shape, random)},
                            {"y", random_tensor(dtype, shape, random)},
                            {"v", random_tensor(dtype, row, random)},
                            {"c", random_tensor(dtype, {}, random)}};
      expect_equal("a = Mul(x, y); b = Add(a, v); d = Tanh(b); e = Mul(d, c); f = Sub(e, x)",
                   {"f:0"}, feeds);
      expect_equal(
          "a = Exp(x); b = Greater(a, y); d = SelectV2(b, a, c); e = Neg(y)\n"
          "f = Maximum(d, e)",
          {"a:0", "b:0", "f:0"}, feeds);
      expect_equal("a = ReluGrad(x, y); b = AddN(a, y, x, N=3); d = Square(b)", {"a:0", "d:0"},
                   feeds);
    }
  }
}

TEST(Fused, ReducesRows) {
  std::mt19937 random(2);
  const std::string one = "a = Const(dtype=int32, value=int32[1] [-1]);";
  for (const Shape& shape : {Shape{300, 65}, Shape{2, 9'000}, Shape{4, 30, 16}, Shape{1, 400}}) {
    const Shape row{shape[shape.rank() - 1]};
    const Values feeds = {{"x", random_tensor(DType::f32, shape, random)},
                          {"v", random_tensor(DType::f32, row, random)}};
    // Layer normalisation.
    expect_equal(one +
                     "m = Mean(x, a, keep_dims=true); d = Sub(x, m); q = Square(d)\n"
                     "s = Mean(q, a, keep_dims=true); r = Rsqrt(s); n = Mul(d, r); z = Mul(n, v)",
                 {"z:0"}, feeds);
    expect_equal(one + "e = Exp(x); s = Sum(e, a, keep_dims=false); l = Log(s)", {"e:0", "l:0"},
                 feeds);
    expect_equal("s = Add(x, v); p = Softmax(s); q = Mul(p, x)", {"q:0"}, feeds, 1, 1e-6);
  }
}

TEST(Fused, AddsABiasOfOneColumn) {
  std::mt19937 random(8);
  const Values feeds = {{"x", random_tensor(DType::f32, {700, 1}, random)},
                        {"v", random_tensor(DType::f32, {1}, random)}};
  expect_equal("a = BiasAdd(x, v); b = Relu(a)", {"b:0"}, feeds);
  expect_equal("a = ReluGrad(x, x); b = BiasAddGrad(a)", {"a:0", "b:0"}, feeds, 1, 1e-5);
}

TEST(Fused, RunsWholeWhatHasNoRows) {
  std::mt19937 random(3);
  const Values feeds = {{"x", random_tensor(DType::f32, {40, 30}, random)},
                        {"t", random_tensor(DType::f32, {40, 1}, random)},
                        {"r", random_tensor(DType::f32, {1, 30}, random)}};
  expect_equal("a = Add(x, t); b = Mul(a, r); c = Tanh(b)", {"c:0"}, feeds);
  // Sums over all axes belong to no row.
  expect_equal(
      "o = Const(dtype=int32, value=int32[2] [0, 1]); a = Square(x)\n"
      "s = Sum(a, o, keep_dims=true); b = Mul(a, s)",
      {"b:0"}, feeds, 0);
  const Values empty = {{"x", Tensor(DType::f32, {0, 300})}};
  const std::string text =
      "x = _Feed(dtype=float, name='x:0', shape=[?,300]); a = Neg(x); b = Tanh(a)";
  Graph graph = parse(text);
  for (const auto& node : graph.nodes())
    node->assigned_device = DeviceName::parse("/job:localhost/replica:0/task:0/device:CPU:0");
  ASSERT_TRUE(fuse(graph, {.fetches = {"b:0"}}, {}));
  EXPECT_EQ(run(graph, empty, {"b:0"}).at("b:0").shape(), (Shape{0, 300}));
}

// A column as long as a row is wide is no row.
TEST(Fused, TellsRowsFromColumns) {
  std::mt19937 random(4);
  const Values feeds = {{"x", random_tensor(DType::f32, {64, 64}, random)},
                        {"v", random_tensor(DType::f32, {64}, random)},
                        {"t", random_tensor(DType::f32, {64, 1}, random)}};
  expect_equal("a = Add(x, v); b = Mul(a, t); c = Sub(b, v)", {"c:0"}, feeds);
  expect_equal(
      "o = Const(dtype=int32, value=int32[1] [1]); s = Sum(x, o); n = Neg(s)\n"
      "a = Add(x, n)",
      {"a:0"}, feeds);
}

TEST(Fused, SumsAllRows) {
  std::mt19937 random(7);
  for (const Shape& shape : {Shape{10'000, 32}, Shape{300, 1'000}, Shape{3, 4, 50, 16},
                             Shape{1, 700}, Shape{65, 10}, Shape{3, 70'000}}) {
    const Values feeds = {{"x", random_tensor(DType::f32, shape, random)},
                          {"y", random_tensor(DType::f32, shape, random)}};
    expect_equal("r = ReluGrad(x, y); b = BiasAddGrad(r)", {"r:0", "b:0"}, feeds, 1, 1e-4);
    std::string axes;
    for (int axis = 0; axis + 1 < shape.rank(); ++axis) axes += concat(axis == 0 ? "" : ", ", axis);
    const std::string over =
        concat("a = Const(dtype=int32, value=int32[", shape.rank() - 1, "] [", axes, "]);");
    for (const char* const keep : {"true", "false"}) {
      expect_equal(over + "m = Mul(x, y); s = Sum(m, a, keep_dims=" + keep + "); n = Neg(m)",
                   {"s:0", "n:0"}, feeds, 1, 1e-4);
    }
  }
}

TEST(Fused, AddsAProductToAValue) {
  std::mt19937 random(9);
  for (const Shape& shape : {Shape{30, 20}, Shape{1, 300}, Shape{300, 1}, Shape{200, 130}}) {
    for (const int64_t terms : {0, 1, 5, 90}) {
      const int64_t m = shape[0], n = shape[1];
      for (const DType dtype : {DType::f32, DType::f64, DType::bf16}) {
        const Values feeds = {{"s", random_tensor(dtype, shape, random)},
                              {"x", random_tensor(dtype, {m, terms}, random)},
                              {"xt", random_tensor(dtype, {terms, m}, random)},
                              {"y", random_tensor(dtype, {terms, n}, random)},
                              {"yt", random_tensor(dtype, {n, terms}, random)}};
        const double tolerance = dtype == DType::bf16 ? 0.05 : 1e-5;
        for (const char* const product :
             {"MatMul(x, y)", "MatMul(xt, y, transpose_a=true)", "MatMul(x, yt, transpose_b=true)",
              "MatMul(xt, yt, transpose_a=true, transpose_b=true)"}) {
          expect_equal(concat("p = ", product, "; z = AddV2(s, p)"), {"z:0"}, feeds, 1, tolerance);
        }
        expect_equal("p = MatMul(x, y); z = AddN(p, s, N=2)", {"z:0"}, feeds, 1, tolerance);
      }
    }
  }
}

TEST(Fused, RunsItsHeadBlockByBlock) {
  std::mt19937 random(6);
  for (const int64_t rows : {3, 7, 200, 5'000}) {
    const Values feeds = {{"x", random_tensor(DType::f32, {rows, 40}, random)},
                          {"w", random_tensor(DType::f32, {40, 96}, random)},
                          {"u", random_tensor(DType::f32, {96, 40}, random)},
                          {"v", random_tensor(DType::f32, {96}, random)},
                          {"y", random_tensor(DType::f32, {rows, 96}, random)}};
    const std::string product = "m = MatMul(x, w);";
    expect_equal(product + "s = BiasAdd(m, v); r = Relu(s)", {"r:0"}, feeds, 1, 1e-5);
    expect_equal("m = MatMul(x, u, transpose_b=true); s = Add(m, y); q = Mul(s, m)", {"s:0", "q:0"},
                 feeds, 1, 1e-5);
    expect_equal(product + "s = Mul(m, m); t = Add(s, v); z = Exp(t); e = Softmax(t)",
                 {"t:0", "e:0"}, feeds, 1, 1e-5);
  }
  for (const int64_t images : {1, 3, 40}) {
    const Values feeds = {{"x", random_tensor(DType::f32, {images, 30, 30, 16}, random)},
                          {"w", random_tensor(DType::f32, {3, 3, 16, 32}, random)},
                          {"v", random_tensor(DType::f32, {32}, random)},
                          {"y", random_tensor(DType::f32, {images, 30, 30, 32}, random)}};
    const std::string c = "c = Conv2D(x, w, strides=[1, 1, 1, 1], padding='SAME');";
    expect_equal(c + "s = BiasAdd(c, v); r = Relu(s)", {"r:0"}, feeds, 1, 1e-5);
    expect_equal(c + "s = BiasAdd(c, v); a = Add(s, y); r = Relu(a)", {"a:0", "r:0"}, feeds, 1,
                 1e-5);
    const std::string d = "c = DepthwiseConv2dNative(x, k, strides=[1, 2, 2, 1], padding='SAME');";
    Values other = feeds;
    other["k"] = random_tensor(DType::f32, {3, 3, 16, 2}, random);
    other.erase("w");
    other.erase("y");
    expect_equal(d + "s = BiasAdd(c, v); r = Relu6(s)", {"r:0"}, other, 1, 1e-5);
  }
}

TEST(Fused, KeepsRandomProgramsEqual) {
  std::mt19937 random(5);
  // Without exp() and its like: in vectors and alone they differ by a bit.
  const std::vector<std::string> unary = {"Neg", "Square", "Abs", "Relu", "Sign", "Softsign"};
  const std::vector<std::string> binary = {"Add",     "Sub",     "Mul",
                                           "Maximum", "Minimum", "SquaredDifference"};
  for (int round = 0; round < 60; ++round) {
    const Shape shape = round % 3 == 0   ? Shape{17, 129}
                        : round % 3 == 1 ? Shape{1'000, 3}
                                         : Shape{3, 4, 1'100};
    const Values feeds = {{"x", random_tensor(DType::f32, shape, random)},
                          {"y", random_tensor(DType::f32, shape, random)},
                          {"v", random_tensor(DType::f32, Shape{shape[shape.rank() - 1]}, random)}};
    std::vector<std::string> values = {"x", "y"};
    std::string text;
    std::vector<std::string> fetches;
    for (int i = 0; i < 12; ++i) {
      const auto pick = [&](const auto& from) { return from[random() % from.size()]; };
      const std::string name = concat("n", i);
      if (random() % 2 == 0) {
        text += concat(name, " = ", pick(unary), "(", pick(values), ")\n");
      } else {
        const std::string other = random() % 5 == 0 ? "v" : pick(values);
        const std::string op = other == "v" ? "Add" : pick(binary);
        text += concat(name, " = ", op, "(", pick(values), ", ", other, ")\n");
      }
      values.push_back(name);
      if (random() % 3 == 0 || i == 11) fetches.push_back(name + ":0");
    }
    SCOPED_TRACE(text);
    std::string lines;
    for (const auto& [name, value] : feeds)
      lines +=
          concat(name, " = _Feed(dtype=float, name='", name, ":0', shape=", value.shape(), ")\n");
    Graph graph = parse(lines + text);
    for (const auto& node : graph.nodes())
      node->assigned_device = DeviceName::parse("/job:localhost/replica:0/task:0/device:CPU:0");
    const Values wanted = run(graph, feeds, fetches);
    fuse(graph, {.fetches = fetches}, {});
    verify(graph, "fuse");
    for (const auto& [fetch, value] : run(graph, feeds, fetches)) {
      EXPECT_EQ(std::memcmp(value.raw(), wanted.at(fetch).raw(), value.bytes()), 0) << fetch;
    }
  }
}

}  // namespace
}  // namespace leat
