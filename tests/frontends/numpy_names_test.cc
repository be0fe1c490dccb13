// Functions of NumPy that are made of several ops, with the values that NumPy returns.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <set>
#include <sstream>

#include "frontends/cpp/nn/nn.h"
#include "frontends/cpp/optimizers/optimizers.h"
#include "frontends/cpp/session.h"
#include "graph/gradient.h"
#include "tests/support/expect_error.h"

namespace leat {
namespace {

using testing::ElementsAre;
using testing::ElementsAreArray;
using testing::FloatNear;

class NumpyNames : public testing::Test {
 protected:
  template <class T = float>
  std::vector<T> values(Output y) {
    return Session(g).run(y).to_vector<T>();
  }
  // 0, 1, 2, … of that shape.
  Output numbers(const Shape& shape) {
    return reshape(arange(g, static_cast<double>(shape.elements())), shape);
  }

  Graph g;
  Output x = numbers({2, 3});
  Output v = constant(g, {1.0, -2.0, 3.0});
};

TEST_F(NumpyNames, CumulativeSumsFlattenWithoutAnAxis) {
  EXPECT_THAT(values(cumsum(x)), ElementsAre(0, 1, 3, 6, 10, 15));
  EXPECT_THAT(values(cumprod(x + 1)), ElementsAre(1, 2, 6, 24, 120, 720));
  EXPECT_THAT(values(cumsum(x, {.exclusive = true})), ElementsAre(0, 0, 1, 3, 6, 10));
  EXPECT_THAT(values(cumprod(v, {.reverse = true})), ElementsAre(-6, -6, 3));
  EXPECT_THAT(values(cumsum(x, 0)), ElementsAre(0, 1, 2, 3, 5, 7));
}

TEST_F(NumpyNames, DotAndOuter) {
  EXPECT_THAT(values(dot(x, v)), ElementsAre(4, 10));
  EXPECT_THAT(values(dot(v, v)), ElementsAre(14));
  EXPECT_THAT(values(dot(constant(g, 2.0), v)), ElementsAre(2, -4, 6));
  const Output a = numbers({2, 3, 4});
  EXPECT_THAT(values(dot(a, numbers({4}))), ElementsAre(14, 38, 62, 86, 110, 134));
  EXPECT_THAT(values(dot(a, numbers({4, 3}))[1]),
              ElementsAre(258, 312, 366, 330, 400, 470, 402, 488, 574));
  const Output four = dot(a, numbers({2, 4, 3}));
  EXPECT_EQ(four.shape(), Shape({2, 3, 2, 3}));
  EXPECT_THAT(values(four[{1, 2, 1}]), ElementsAre(1434, 1520, 1606));
  EXPECT_THAT(values(outer(v, x)),
              ElementsAre(0, 1, 2, 3, 4, 5, 0, -2, -4, -6, -8, -10, 0, 3, 6, 9, 12, 15));
  EXPECT_EQ(outer(v, x).shape(), Shape({3, 6}));
  expect_error_with(Code::invalid_argument, "the ranks of its operands must be known",
                    [&] { dot(placeholder(g, "any", f32), v); });
}

TEST_F(NumpyNames, LogarithmsTracesAndCounts) {
  EXPECT_THAT(values<double>(log2(constant(g, {1.0, 8.0, 0.5}, f64))),
              testing::Pointwise(testing::DoubleNear(1e-15), {0.0, 3.0, -1.0}));
  EXPECT_THAT(values<double>(log10(constant(g, {1.0, 1000.0, 0.1}, f64))),
              testing::Pointwise(testing::DoubleNear(1e-15), {0.0, 3.0, -1.0}));
  const Output four = constant(g, 4.0);
  EXPECT_THAT(values(gradients(log2(four), four)[0]), ElementsAre(FloatNear(0.36067376F, 1e-7F)));
  EXPECT_THAT(values(trace(x)), ElementsAre(4));
  EXPECT_THAT(values(trace(numbers({2, 2, 3}))), ElementsAre(4, 16));
  expect_error_with(Code::invalid_argument, "", [&] { trace(v); });
  EXPECT_THAT(values<int64_t>(count_nonzero(x)), ElementsAre(5));
  EXPECT_THAT(values<int64_t>(count_nonzero(x, 0)), ElementsAre(1, 2, 2));
  EXPECT_THAT(values<int64_t>(count_nonzero(x > 2, 1, {.keep_dims = true})), ElementsAre(0, 3));
  EXPECT_EQ(count_nonzero(x, {.keep_dims = true}).shape(), Shape({1, 1}));
}

TEST_F(NumpyNames, TensordotTakesACountOrAxes) {
  const Output a = numbers({2, 3, 4}), b = numbers({4, 3});
  EXPECT_THAT(values(tensordot(a, b, {{1, 2}, {1, 0}})), ElementsAre(440, 1232));
  EXPECT_THAT(values(tensordot(a, b, 1)[0]), ElementsAre(42, 48, 54, 114, 136, 158, 186, 224, 262));
  EXPECT_THAT(values(tensordot(x, ones(g, {2, 3, 2}))), ElementsAre(15, 15));
  EXPECT_EQ(values(tensordot(a, b, {-1, 0})), values(tensordot(a, b, 1)));
  EXPECT_EQ(tensordot(a, b, 0).shape(), Shape({2, 3, 4, 4, 3}));
  expect_error_with(Code::invalid_argument, "2 axes of a, but 1 of b", [&] {
    tensordot(a, b, {{1, 2}, {1}});
  });
  expect_error_with(Code::invalid_argument, "has no axis 5", [&] { tensordot(a, b, {5, 0}); });
  expect_error_with(Code::invalid_argument, "axis -2 of a is named twice", [&] {
    tensordot(a, b, {{1, -2}, {0, 1}});
  });
  expect_error_with(Code::invalid_argument, "must have as many", [&] { tensordot(a, b, 3); });
}

TEST_F(NumpyNames, RepeatTakesOneNumberOrOneForEachSlice) {
  EXPECT_THAT(values(repeat(x, 2, 1)), ElementsAre(0, 0, 1, 1, 2, 2, 3, 3, 4, 4, 5, 5));
  EXPECT_EQ(repeat(x, 2, 1).shape(), Shape({2, 6}));
  EXPECT_THAT(values(repeat(x, {2, 0, 1}, -1)), ElementsAre(0, 0, 2, 3, 3, 5));
  EXPECT_THAT(values(repeat(v, 2)), ElementsAre(1, 1, -2, -2, 3, 3));
  EXPECT_THAT(values(repeat(x, 2)), ElementsAre(0, 0, 1, 1, 2, 2, 3, 3, 4, 4, 5, 5));
  EXPECT_THAT(values(repeat(x, 0, 0)), ElementsAre());
  const Output fed = placeholder(g, "fed", f32), times = placeholder(g, "times", i64, {});
  EXPECT_THAT(
      Session(g)
          .run({{fed, Tensor::of<float>({2, 1}, {7, 8})}, {times, 3}}, repeat(fed, times, -1))
          .to_vector<float>(),
      ElementsAre(7, 7, 7, 8, 8, 8));
  EXPECT_THAT(values(gradients({sum(repeat(v, 3) * arange(g, 9.0))}, {v})[0]),
              ElementsAre(3, 12, 21));
  expect_error_with(Code::invalid_argument, "has no axis 2", [&] { repeat(x, 2, 2); });
  expect_error_with(Code::invalid_argument, "repeats must be an integer or a vector",
                    [&] { repeat(x, 1.5, 0); });
}

TEST_F(NumpyNames, ScatterNdAddsAtTuples) {
  EXPECT_THAT(values(scatter_nd({{1}, {3}, {1}}, v, {5})), ElementsAre(0, 4, 0, -2, 0));
  EXPECT_THAT(values(scatter_nd({{0, 1}, {1, 0}, {1, 2}}, v, {2, 3})),
              ElementsAre(0, 1, 0, -2, 0, 3));
  const Output ids = constant(g, {{1}}, i64);
  EXPECT_THAT(values(scatter_nd(ids, x[slice(1)], shape_of(x))), ElementsAre(0, 0, 0, 0, 1, 2));
  EXPECT_THAT(values(gradients({sum(square(scatter_nd({{1}, {3}, {1}}, v, {5})))}, {v})[0]),
              ElementsAre(8, -4, 8));
}

TEST_F(NumpyNames, MeansOfBoolsAndIntegersAreFloats) {
  EXPECT_THAT(values(mean(x > 3.5)), ElementsAre(FloatNear(1.0F / 3, 1e-6)));
  EXPECT_THAT(values(mean(x > 0.5, 0)), ElementsAre(0.5, 1, 1));
  EXPECT_THAT(values(mean(constant(g, {1, 2, 4}))), ElementsAre(FloatNear(7.0F / 3, 1e-6)));
  EXPECT_THAT(values(var(constant(g, {1, 2, 4}))), ElementsAre(FloatNear(14.0F / 9, 1e-6)));
  EXPECT_THAT(values<int64_t>(sum(x > 0.5)), ElementsAre(5));
  EXPECT_THAT(values<int64_t>(sum(x > 0.5, 0)), ElementsAre(1, 2, 2));
  EXPECT_THAT(values<int>(sum(constant(g, {1, 2, 4}))), ElementsAre(7));
}

TEST_F(NumpyNames, WhatIsMadeHasTheDtypeThatIsAskedFor) {
  const std::vector<Output> made = {zeros(g, {2}, {.dtype = i64}),
                                    ones(g, {2}, {.dtype = i64}),
                                    full(g, {2}, 7, {.dtype = i64}),
                                    full(g, {2}, 7, i64),
                                    full(g, {2}, constant(g, 7), i64),
                                    zeros_like(x, {.dtype = i64}),
                                    ones_like(x, i64),
                                    arange(g, 3, {.dtype = i64}),
                                    arange(g, 1, 3, {.dtype = i64}),
                                    arange(g, 1, 9, 2, {.dtype = i64}),
                                    arange(g, constant(g, 3), i64),
                                    eye(g, 2, {.dtype = i64}),
                                    eye(g, 2, 3, {.dtype = i64})};
  for (const Output& each : made) EXPECT_EQ(each.dtype(), i64) << each;
  EXPECT_EQ(linspace(g, 0, 1, 3, {.dtype = f64}).dtype(), f64);
  EXPECT_THAT(values<int64_t>(full(g, {2}, 7, {.dtype = i64})), ElementsAre(7, 7));
  EXPECT_THAT(values<int64_t>(arange(g, 1, 9, 3, {.dtype = i64})), ElementsAre(1, 4, 7));
  EXPECT_THAT(values(arange(g, 3, f32)), ElementsAre(0, 1, 2));
  EXPECT_THAT(values<int>(ones_like(placeholder_with_default(x, Shape::unknown()), i32)),
              testing::Each(1));
  expect_error_with(Code::invalid_argument, "0.5", [&] { full(g, {2}, 0.5, i32); });
}

TEST_F(NumpyNames, OneHotNamesItsValuesAsTensorFlow) {
  EXPECT_THAT(values(one_hot(constant(g, {1, 0}), 2, {.on_value = 5, .off_value = -1})),
              ElementsAre(-1, 5, 5, -1));
}

TEST_F(NumpyNames, OutputsPrintTheirNameDtypeAndShape) {
  std::ostringstream out;
  out << placeholder(g, "image", bf16, {any, 28}) << "; " << (x > 1)[0] << "; " << Output();
  EXPECT_THAT(out.str(), testing::StartsWith("image:0 bfloat16[?,28]; "));
  EXPECT_THAT(out.str(), testing::HasSubstr(" bool[3]; none"));
}

TEST_F(NumpyNames, DistributionsTakeTheirRange) {
  const std::vector<float> drawn = values(random::uniform(g, {1000}, -1, 1, {.seed = 3}));
  EXPECT_LT(*std::min_element(drawn.begin(), drawn.end()), -0.9);
  EXPECT_GT(*std::max_element(drawn.begin(), drawn.end()), 0.9);
  EXPECT_THAT(drawn, testing::Each(testing::AllOf(testing::Ge(-1), testing::Lt(1))));
  EXPECT_EQ(random::uniform(g, {3}, 0, 6, {.dtype = i32}).dtype(), i32);
  // Within five standard deviations.
  EXPECT_NEAR(values(mean(random::normal(g, {10'000}, 5, 0.1, {.seed = 3})))[0], 5, 0.005);
}

TEST_F(NumpyNames, PermutationsHaveEachNumberOnce) {
  const std::vector<int> drawn = values<int>(random::permutation(g, 50, {.seed = 1}));
  EXPECT_FALSE(std::is_sorted(drawn.begin(), drawn.end()));
  EXPECT_EQ(drawn.size(), 50);
  EXPECT_EQ(std::set<int>(drawn.begin(), drawn.end()).size(), 50);
  EXPECT_LE(*std::max_element(drawn.begin(), drawn.end()), 49);
}

TEST_F(NumpyNames, ChoicesAreRowsOrNumbers) {
  const Output rows = random::choice(x, {2, 5}, {.seed = 2});
  EXPECT_EQ(rows.shape(), Shape({2, 5, 3}));
  const std::vector<float> drawn = values(rows);
  for (size_t i = 0; i < drawn.size(); i += 3) {
    EXPECT_TRUE(drawn[i] == 0 || drawn[i] == 3);
    EXPECT_EQ(drawn[i + 1], drawn[i] + 1);
  }
  std::vector<int> once = values<int>(random::choice(g, 20, {20}, {.replace = false, .seed = 2}));
  EXPECT_FALSE(std::is_sorted(once.begin(), once.end()));
  std::sort(once.begin(), once.end());
  for (int i = 0; i < 20; ++i) EXPECT_EQ(once[i], i);
  std::map<int, int> counts;
  const Output p = constant(g, {0.5, 0.0, 0.25, 0.25});
  for (const int each : values<int>(random::choice(g, 4, {10'000}, {.p = p, .seed = 2})))
    ++counts[each];
  // Within five standard deviations.
  EXPECT_NEAR(counts[0], 5000, 250);
  EXPECT_EQ(counts[1], 0);
  EXPECT_NEAR(counts[2], 2500, 217);
  expect_error_with(Code::invalid_argument, "got 4 (begin 0, extent 3)",
                    [&] { random::choice(g, 3, {4}, {.replace = false}); });
  expect_error_with(Code::invalid_argument, "leave out .replace = false",
                    [&] { random::choice(g, 4, {2}, {.replace = false, .p = p}); });
}

TEST_F(NumpyNames, GroupsAreOfNodesAndOutputs) {
  const Output a = variable(g, "a", 0.0), b = variable(g, "b", 0.0);
  const Output add_a = assign_add(a, 1), add_b = assign_add(b, 1);
  const std::vector<Node*> nodes = {add_a.node, add_b.node};
  const std::vector<Output> outputs = {add_a, add_b};
  Session session(g);
  session.initialize();
  for (Node* each : {&group(g, nodes), &group(g, outputs), &group(g, {add_a, add_b.node}),
                     &group(g, {add_a, *add_b.node}), &group({add_a, add_b.node}, "both")})
    session.run(*each);
  EXPECT_EQ(session.run(a).item<float>(), 5);
  EXPECT_EQ(session.run(b).item<float>(), 5);
  EXPECT_TRUE(g.find("both")->is("NoOp"));
  expect_error_with(Code::invalid_argument, "without a graph needs a node", [] { group({}); });
  expect_error_with(Code::invalid_argument, "is given an empty Output", [&] {
    group(g, std::vector<Output>{add_a, Output()});
  });
}

TEST_F(NumpyNames, GradientsUnpackAsPairs) {
  const Output w = variable(g, "w", 3.0);
  const Output rows = nn::embedding(constant(g, {1, 1}), 3, 2, {.initializer = initializers::ones});
  const Sgd sgd{0.5};
  auto gradients = sgd.compute_gradients(square(w) + sum(rows));
  for (auto& [gradient, variable] : gradients) {
    EXPECT_TRUE(variable_name(variable) == "w" ||
                variable_name(variable) == "embedding/embeddings");
    gradient = clip(gradient * 2, -4, 4);
  }
  for (const auto& [gradient, variable] : gradients) EXPECT_TRUE(gradient && variable);
  Node& train = sgd.apply_gradients(gradients);
  Session session(g);
  session.initialize();
  session.run(train);
  EXPECT_EQ(session.run(w).item<float>(), 3 - 0.5F * 4);
  const Output table = variable_named(g, "embedding/embeddings");
  EXPECT_THAT(session.run(table).to_vector<float>(), ElementsAre(1, 1, -1, -1, 1, 1));
}

}  // namespace
}  // namespace leat
