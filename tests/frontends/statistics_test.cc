// Quantiles, orders and tolerances, with the values that NumPy returns.
#include "graph/ops/statistics.h"

#include <cmath>
#include <limits>

#include "graph/gradient.h"
#include "tests/frontends/tutorials.h"

namespace leat {
namespace {

using testing::ElementsAre;

class Statistics : public Tutorials {
 protected:
  std::vector<int32_t> truth(Output y) { return values<int32_t>(cast(y, i32)); }
  Output x = constant(g, {{3.0, 1.0, 2.0, 7.0}, {0.5, 0.5, -1.0, 4.0}});
};

TEST_F(Statistics, QuantilesInterpolate) {
  expect_near(quantile(x, 0.3), {0.55F});
  expect_near(quantile(x, 0.3, 0), {1.25F, 0.65F, -0.1F, 4.9F});
  const Output kept = quantile(x, 0.3, 1, {.keep_dims = true});
  EXPECT_EQ(kept.shape(), Shape({2, 1}));
  expect_near(kept, {1.9F, 0.35F});
  const Output two = quantile(x, {0.1, 0.75}, -1);
  EXPECT_EQ(two.shape(), Shape({2, 2}));
  expect_near(two, {1.3F, -0.55F, 4, 1.375F});
  expect_near(percentile(x, {25, 50, 90}), {0.5F, 1.5F, 4.9F});
  expect_near(quantile(x, {0, 1}, {.keep_dims = true}), {-1, 7});
  EXPECT_EQ(quantile(x, {0, 1}, {.keep_dims = true}).shape(), Shape({2, 1, 1}));
}

TEST_F(Statistics, QuantilesOverSeveralAxes) {
  const Output z = pow(reshape(arange(g, 24.0), {2, 3, 4}), 1.5);
  const Output y = quantile(z, {0.25, 0.6}, {0, 2});
  EXPECT_EQ(y.shape(), Shape({2, 3}));
  expect_near(y, {2.37132034F, 13.81778881F, 30.46708245F, 42.62980882F, 65.21855913F, 90.8009932F},
              1e-4F);
  EXPECT_EQ(quantile(z, 0.5, {-1, 0}, {.keep_dims = true}).shape(), Shape({1, 3, 1}));
}

TEST_F(Statistics, Medians) {
  expect_near(median(x), {1.5F});
  expect_near(median(x, 0), {1.75F, 0.75F, 0.5F, 5.5F});
  expect_near(median(x, 1), {2.5F, 0.5F});
  expect_near(median(constant(g, {5, 1, 2, 2})), {2});  // of integers
  EXPECT_EQ(values<double>(median(constant(g, {1.0, 2.0, 4.0}, f64)))[0], 2);
}

TEST_F(Statistics, ExtentsMayDifferFromStepToStep) {
  const Output fed = placeholder(g, "fed", f32, {any});
  const Output y = quantile(fed, 0.5);
  Session session(g);
  EXPECT_EQ(session.run({{fed, {4, 1, 9}}}, y).item<float>(), 4);
  EXPECT_EQ(session.run({{fed, {4, 1, 9, 5}}}, y).item<float>(), 4.5);
  const Output q = placeholder(g, "q", f32, Shape{});
  EXPECT_EQ(session.run({{q, 0.25}}, quantile(arange(g, 5.0), q)).item<float>(), 1);
}

TEST_F(Statistics, GradientsGoToTheElementsInBetween) {
  expect_near(gradients(quantile(x, 0.3, 1), x)[0], {0, 0.1F, 0.9F, 0, 0.0F, 0.9F, 0.1F, 0}, 2);
  // The position is 0.9: 0.1 of the smallest and 0.9 of the next.
  const Output row = constant(g, {3.0, 1.0, 2.0, 7.0});
  expect_near(gradients(quantile(row, 0.3), row)[0], {0, 0.1F, 0.9F, 0});
}

TEST_F(Statistics, ReportsWhatDoesNotFit) {
  expect_error_with(Code::invalid_argument, "q must be in [0, 1], got 1.5",
                    [&] { quantile(x, 1.5); });
  expect_error_with(Code::invalid_argument, "q must be in [0, 100], got -1", [&] {
    percentile(x, {50, -1});
  });
  expect_error_with(Code::invalid_argument, "axis 2 is out of range", [&] { median(x, 2); });
  expect_error_with(Code::invalid_argument, "axis -2 occurs twice", [&] { median(x, {0, -2}); });
  expect_error_with(Code::invalid_argument, "must be numbers", [&] {
    median(constant(g, {true, false}));
  });
  expect_error_with(Code::invalid_argument, "a number or a vector", [&] {
    quantile(x, {{0.1, 0.2}});
  });
}

TEST_F(Statistics, SortsTheLargestFirst) {
  EXPECT_THAT(values(sort(x, -1, {.descending = true})), ElementsAre(7, 3, 2, 1, 4, 0.5, 0.5, -1));
  EXPECT_THAT(values<int32_t>(argsort(x, 1, {.descending = true})),
              ElementsAre(3, 0, 2, 1, 3, 0, 1, 2));
  EXPECT_THAT(values<int32_t>(argsort(x, 0, {.descending = false})),
              ElementsAre(1, 1, 1, 1, 0, 0, 0, 0));
  const int least = std::numeric_limits<int32_t>::min();
  EXPECT_THAT(values<int32_t>(sort(constant(g, {0, least, 5}), 0, {.descending = true})),
              ElementsAre(5, 0, least));
}

TEST_F(Statistics, BinsOfEdges) {
  const Output edges = constant(g, {0.0, 1.0, 2.5, 4.0, 10.0});
  EXPECT_THAT(values<int32_t>(digitize(constant(g, {0.2, 6.4, 3.0, 1.6}), edges)),
              ElementsAre(1, 4, 3, 2));
  const Output at_edges = constant(g, {{1.0, 2.5, 10.0}});
  EXPECT_THAT(values<int32_t>(digitize(at_edges, edges)), ElementsAre(2, 3, 5));
  EXPECT_THAT(values<int32_t>(digitize(at_edges, edges, {.right = true})), ElementsAre(1, 2, 4));
  EXPECT_EQ(digitize(at_edges, edges).shape(), Shape({1, 3}));
  // Fractions between integers, and integers between fractions.
  EXPECT_THAT(values<int32_t>(digitize(constant(g, {1, 2}), {1.5, 1.75})), ElementsAre(0, 2));
  EXPECT_THAT(values<int32_t>(digitize(constant(g, {17.5, 18.0}), {18, 25})), ElementsAre(0, 1));
  expect_error_with(Code::invalid_argument, "the bins must be a vector of edges",
                    [&] { digitize(x, 3); });
}

TEST_F(Statistics, ClosenessIsRelativeToTheSecond) {
  const float infinity = INFINITY, nan = NAN;
  const Output a = constant(g, std::vector<float>{100, 1e-9F, infinity, infinity, nan, 1});
  const Output b = constant(g, std::vector<float>{100.0005F, 0, infinity, -infinity, nan, 1.1F});
  EXPECT_THAT(truth(isclose(a, b)), ElementsAre(1, 1, 1, 0, 0, 0));
  EXPECT_THAT(truth(isclose(a, b, {.rtol = 0.1, .equal_nan = true})),
              ElementsAre(1, 1, 1, 0, 1, 1));
  // A tolerance of 0.1 is enough for the larger value, not for the smaller one.
  const Output ten = constant(g, 10.0), eleven = constant(g, 11.05);
  EXPECT_THAT(truth(isclose(ten, eleven, {.rtol = 0.1})), ElementsAre(1));
  EXPECT_THAT(truth(isclose(eleven, ten, {.rtol = 0.1})), ElementsAre(0));
  EXPECT_THAT(truth(allclose(x, x + 1e-7)), ElementsAre(1));
  EXPECT_THAT(truth(allclose(x, 3)), ElementsAre(0));
  EXPECT_THAT(truth(isclose(constant(g, {3, 4}), 3)), ElementsAre(1, 0));
}

}  // namespace
}  // namespace leat
