// nn::attention() and nn::layer_norm(), against their formulas written as loops over numbers.
#include "frontends/cpp/nn/attention.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "frontends/cpp/nn/normalization.h"
#include "frontends/cpp/session.h"
#include "graph/gradient.h"
#include "tests/support/expect_error.h"

namespace leat {
namespace {

Tensor waves(const Shape& shape, double phase) {
  std::vector<float> values;
  for (int64_t i = 0; i < shape.elements(); ++i)
    values.push_back(static_cast<float>(std::sin(1.7 * static_cast<double>(i) + phase)));
  return Tensor::of<float>(shape, values);
}

constexpr int64_t batch = 2, queries = 3, keys = 4, heads = 2, size = 5, width = 2;

double at(const Tensor& x, int64_t b, int64_t t, int64_t i) {
  return x.data<float>()[(b * x.shape()[1] + t) * x.shape()[2] + i];
}

using Sees = std::function<bool(int64_t b, int64_t query, int64_t key)>;
std::vector<float> reference(const Tensor& q, const Tensor& k, const Tensor& v, const Sees& sees) {
  std::vector<float> out;
  for (int64_t b = 0; b < batch; ++b) {
    for (int64_t i = 0; i < queries; ++i) {
      for (int64_t h = 0; h < heads; ++h) {
        std::vector<double> shares;
        double total = 0;
        for (int64_t j = 0; j < keys; ++j) {
          double score = 0;
          for (int64_t d = 0; d < size; ++d)
            score += at(q, b, i, h * size + d) * at(k, b, j, h * size + d);
          shares.push_back(sees(b, i, j) ? std::exp(score / std::sqrt(double{size})) : 0);
          total += shares.back();
        }
        for (int64_t d = 0; d < width; ++d) {
          double sum = 0;
          for (int64_t j = 0; j < keys; ++j)
            sum += shares[static_cast<size_t>(j)] / total * at(v, b, j, h * width + d);
          out.push_back(static_cast<float>(sum));
        }
      }
    }
  }
  return out;
}

void expect_values(const Tensor& got, const std::vector<float>& expected) {
  EXPECT_THAT(std::vector<float>(got.data<float>(), got.data<float>() + got.elements()),
              testing::Pointwise(testing::FloatNear(1e-5F), expected));
}

TEST(Attention, MatchesItsFormula) {
  const Tensor q = waves({batch, queries, heads * size}, 0),
               k = waves({batch, keys, heads * size}, 1),
               v = waves({batch, keys, heads * width}, 2);
  const std::vector<int64_t> lengths = {2, 4};  // keys of each example
  Tensor mask = Tensor(DType::boolean, {batch, 1, 1, keys});
  for (int64_t b = 0; b < batch; ++b)
    for (int64_t j = 0; j < keys; ++j)
      mask.data<bool>()[b * keys + j] = j < lengths[static_cast<size_t>(b)];
  // Known extents, and unknown ones.
  for (const int64_t n : {batch, int64_t{any}}) {
    for (const int64_t m : {queries, int64_t{any}}) {
      Graph g;
      const Output a = placeholder(g, "q", f32, {n, m, heads * size}),
                   b = placeholder(g, "k", f32, {n, any, heads * size}),
                   c = placeholder(g, "v", f32, {n, any, heads * width});
      const Output seen = placeholder(g, "mask", DType::boolean, {any, 1, 1, any});
      const std::vector<Output> ys = {
          nn::attention(a, b, c, {.heads = heads}),
          nn::attention(a, b, c, {.heads = heads, .causal = true}),
          nn::attention(a, b, c, {.heads = heads, .mask = seen}),
          nn::attention(a, b, c, {.heads = heads, .causal = true, .mask = seen})};
      const std::vector<Tensor> got = Session(g).run({{a, q}, {b, k}, {c, v}, {seen, mask}}, ys);
      const auto before = [](int64_t i, int64_t j) { return j <= i; };
      const auto within = [&](int64_t e, int64_t j) { return j < lengths[static_cast<size_t>(e)]; };
      EXPECT_EQ(got[0].shape(), Shape({batch, queries, heads * width}));
      expect_values(got[0], reference(q, k, v, [](int64_t, int64_t, int64_t) { return true; }));
      expect_values(
          got[1], reference(q, k, v, [&](int64_t, int64_t i, int64_t j) { return before(i, j); }));
      expect_values(
          got[2], reference(q, k, v, [&](int64_t e, int64_t, int64_t j) { return within(e, j); }));
      expect_values(got[3], reference(q, k, v, [&](int64_t e, int64_t i, int64_t j) {
                      return before(i, j) && within(e, j);
                    }));
    }
  }
}

TEST(Attention, LearnsWithSeveralHeads) {
  Graph g;
  const Output x = placeholder(g, "x", f32, {any, any, 6});
  const Output y = nn::multi_head_attention(x, x, x, {.heads = 3, .size = 6, .causal = true});
  EXPECT_EQ(y.shape()[2], 6);
  const auto variables = g.collection("trainable_variables");
  std::vector<std::string> names;
  for (const Output& v : variables) names.push_back(v.node->name);
  EXPECT_THAT(names, testing::Contains("multi_head_attention/query/kernel"));
  EXPECT_EQ(names.size(), 8U);
  const std::vector<Output> slopes = gradients({sum(square(y))}, variables);
  Node& init = initialize_variables(g);
  Session session(g);
  session.run({init});
  const std::vector<Tensor> got = session.run({{x, waves({2, 4, 6}, 0)}}, slopes);
  for (size_t i = 0; i < got.size(); ++i)
    EXPECT_EQ(got[i].shape(), variables[i].shape()) << names[i];
}

TEST(Attention, AppliesAMaskWithoutHeadsToAllHeads) {
  Graph g;
  const Output q = constant(g, waves({2, 3, 4}, 0));
  const Output seen = constant(g, {{{true, false, false}, {true, true, false}, {true, true, true}},
                                   {{true, true, true}, {false, true, true}, {true, false, true}}});
  const Output with_heads = expand_dims(seen, 1);
  const std::vector<Tensor> got =
      Session(g).run({}, {nn::attention(q, q, q, {.heads = 2, .mask = seen}),
                          nn::attention(q, q, q, {.heads = 2, .mask = with_heads})});
  EXPECT_EQ(got[0].to_vector<float>(), got[1].to_vector<float>());
}

TEST(Attention, RejectsMistakes) {
  Graph g;
  const Output q = placeholder(g, "q", f32, {any, 3, 10});
  expect_error_with(Code::invalid_argument, "a known multiple of 3 heads, got q:0",
                    [&] { nn::attention(q, q, q, {.heads = 3}); });
  expect_error_with(Code::invalid_argument, "q and k differ in their last extent", [&] {
    nn::attention(q, placeholder(g, "k", f32, {any, 3, 8}), q);
  });
  expect_error_with(Code::invalid_argument, "the mask must be bool, not float",
                    [&] { nn::attention(q, q, q, {.mask = q}); });
}

TEST(LayerNorm, MatchesItsFormula) {
  Graph g;
  const Output x = placeholder(g, "x", f32, {any, any, 4});
  const Output y = nn::layer_norm(x, {.epsilon = 0.01});
  Node& init = initialize_variables(g);
  Session session(g);
  session.run({init});
  const std::vector<Output> variables = g.collection("trainable_variables");
  ASSERT_EQ(variables.size(), 2U);
  const Tensor gamma = Tensor::of<float>({4}, {1, 2, 3, 4}),
               beta = Tensor::of<float>({4}, {0, 0, 1, -1});
  const Tensor in = waves({2, 3, 4}, 0);
  const Tensor got = session.run({{x, in}, {variables[0], gamma}, {variables[1], beta}}, {y})[0];
  for (int64_t row = 0; row < 6; ++row) {
    const float* r = in.data<float>() + row * 4;
    double mean = 0, variance = 0;
    for (int i = 0; i < 4; ++i) mean += r[i] / 4.0;
    for (int i = 0; i < 4; ++i) variance += (r[i] - mean) * (r[i] - mean) / 4;
    for (int i = 0; i < 4; ++i) {
      const double expected = (r[i] - mean) / std::sqrt(variance + 0.01) * gamma.data<float>()[i] +
                              beta.data<float>()[i];
      EXPECT_NEAR(got.data<float>()[row * 4 + i], expected, 1e-5);
    }
  }
  expect_error_with(Code::invalid_argument, "layer_norm", [&] {
    nn::layer_norm(placeholder(g, "z", f32, {2, any}));
  });
}

}  // namespace
}  // namespace leat
