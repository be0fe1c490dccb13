// FusedBatchNormV3 and LRN against the same formulas in elementwise ops and reductions: values, and
// gradients of both.
#include <gtest/gtest.h>

#include <cmath>

#include "graph/gradient.h"
#include "graph/ops.h"
#include "graph/ops/raw.h"
#include "kernels/examples.h"
#include "tests/support/expect_error.h"
#include "tests/support/run_op.h"

namespace leat {
namespace {

// Values without symmetry; the same on every machine.
Tensor image(const Shape& shape, double offset = 0) {
  std::vector<double> values(shape.elements());
  for (size_t i = 0; i < values.size(); ++i)
    values[i] = offset + std::sin(1.7 * static_cast<double>(i * i % 101)) * 2;
  return from_doubles(f32, shape, values);
}

void expect_close(const Output& actual, const Output& expected, const std::string& what,
                  double tolerance = 2e-5) {
  const std::vector<double> a = to_doubles(evaluate({actual})[0]),
                            b = to_doubles(evaluate({expected})[0]);
  ASSERT_EQ(a.size(), b.size()) << what;
  for (size_t i = 0; i < a.size(); ++i)
    EXPECT_NEAR(a[i], b[i], tolerance * std::max(1.0, std::abs(b[i]))) << what << " " << i;
}

// Both outputs and their gradients with respect to all of `xs`, weighted unevenly.
void expect_same_function(const Output& actual, const Output& expected,
                          const std::vector<Output>& xs) {
  expect_close(actual, expected, "value");
  const Output dy = constant(actual.graph(), image(evaluate({expected})[0].shape(), 0.25));
  const std::vector<Output> a = gradients({actual}, xs, {dy}), b = gradients({expected}, xs, {dy});
  for (size_t i = 0; i < xs.size(); ++i) expect_close(a[i], b[i], concat("gradient ", i));
}

struct BatchNorm {
  Graph graph;
  Output x, scale, offset;

  explicit BatchNorm(const Tensor& images)
      : x(constant(graph, images)),
        scale(constant(graph, floats({0.5f, -2, 3}))),
        offset(constant(graph, floats({1, 0, -1}))) {}

  Output composed(Output images, Output mean, Output variance) {
    const Output z = (images - mean) * rsqrt(variance + 0.001);
    return z * scale + offset;
  }
};

TEST(BatchNorm, TrainingMatchesTheFormulaWithTheBatchMoments) {
  BatchNorm b(image({4, 5, 6, 3}));
  const Output none = constant(b.graph, floats({}));
  const auto out = fused_batch_norm(b.x, b.scale, b.offset, none, none, {{"epsilon", 0.001}});
  const Axes all = {0, 1, 2};
  const Output average = mean(b.x, all);
  const Output variance = mean(square(b.x - average), all);
  expect_same_function(out[0], b.composed(b.x, average, variance), {b.x, b.scale, b.offset});
  expect_close(out[1], average, "mean");
  expect_close(out[2], variance * (120.0 / 119), "unbiased variance");
}

TEST(BatchNorm, LargeValuesDoNotCancel) {
  BatchNorm b(image({4, 5, 6, 3}, 1000));
  const Output none = constant(b.graph, floats({}));
  const auto out = fused_batch_norm(b.x, b.scale, b.offset, none, none, {{"epsilon", 0.001}});
  const Axes all = {0, 1, 2};
  const Output centered = b.x - mean(b.x, all);
  expect_close(out[4], mean(square(centered), all), "variance", 1e-3);
}

TEST(BatchNorm, InferenceUsesTheGivenMoments) {
  BatchNorm b(image({2, 3, 2, 3}));
  const Output average = constant(b.graph, floats({0.5f, -1, 2})),
               variance = constant(b.graph, floats({1, 4, 0.25f}));
  const auto out = fused_batch_norm(b.x, b.scale, b.offset, average, variance,
                                    {{"epsilon", 0.001}, {"is_training", false}});
  expect_same_function(out[0], b.composed(b.x, average, variance), {b.x, b.scale, b.offset});
}

TEST(BatchNorm, ChannelsFirstEqualsTransposedChannelsLast) {
  BatchNorm b(image({2, 3, 4, 5}));
  const Output none = constant(b.graph, floats({}));
  const auto out = fused_batch_norm(b.x, b.scale, b.offset, none, none,
                                    {{"epsilon", 0.001}, {"data_format", "NCHW"}});
  const Output last = transpose(b.x, constant(b.graph, ints({0, 2, 3, 1})));
  const auto expected = fused_batch_norm(last, b.scale, b.offset, none, none, {{"epsilon", 0.001}});
  expect_same_function(out[0], transpose(expected[0], constant(b.graph, ints({0, 3, 1, 2}))),
                       {b.x, b.scale, b.offset});
}

TEST(BatchNorm, MovesRunningMomentsByTheFactor) {
  const std::vector<Tensor> out =
      run_op("FusedBatchNormV3",
             {floats({1, 1, 2, 1}, {1, 3}), floats({1}), floats({0}), floats({10}), floats({4})},
             {{"exponential_avg_factor", 0.25}});
  EXPECT_FLOAT_EQ(out[1].item<float>(), 0.75f * 10 + 0.25f * 2);
  EXPECT_FLOAT_EQ(out[2].item<float>(), 0.75f * 4 + 0.25f * 2);  // unbiased variance of {1, 3}
}

TEST(BatchNorm, RejectsMomentsOfAnotherLength) {
  expect_error_with(Code::invalid_argument, "mean must have the same number of elements", [] {
    run_op("FusedBatchNormV3",
           {floats({1, 1, 2, 1}, {1, 3}), floats({1}), floats({0}), floats({1, 2}), floats({1, 2})},
           {{"is_training", false}});
  });
}

TEST(Lrn, MatchesTheFormula) {
  Graph graph;
  const Output x = constant(graph, image({2, 2, 3, 4}));
  const Output actual =
      op("LRN", {x}, {{"depth_radius", 1}, {"bias", 1.5}, {"alpha", 0.5}, {"beta", 0.75}});
  // Neighbours: the channel itself, the one before and the one after.
  const Output squares = square(x);
  const Output none = constant(graph, image({2, 2, 3, 1}));
  const auto part = split(squares, 4, 3);
  const Output zero = zeros_like(none);
  const Output before = concatenate({zero, part[0], part[1], part[2]}, 3),
               after = concatenate({part[1], part[2], part[3], zero}, 3);
  const Output norm = (squares + (before + after)) * 0.5 + 1.5;
  expect_same_function(actual, x * pow(norm, -0.75), {x});
}

}  // namespace
}  // namespace leat
