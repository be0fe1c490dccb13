// Random ops draw the numbers that TensorFlow draws for the same seeds; the expected ones were
// recorded from TensorFlow 2.21 (CPU). Its generator and conversions are exact; only log, sin and
// cos may differ in the last bit.
#include <gtest/gtest.h>

#include <cmath>

#include "graph/gradient.h"
#include "graph/ops.h"
#include "kernels/examples.h"
#include "tests/support/expect_error.h"
#include "tests/support/run_op.h"

namespace leat {
namespace {

const AttrMap seeds = {{"seed", int64_t{87654321}}, {"seed2", int64_t{42}}};

AttrMap with_dtype(DType dtype, AttrMap attrs = seeds) {
  attrs["dtype"] = dtype;
  return attrs;
}

void expect_numbers(const std::string& op, DType dtype, const std::vector<double>& expected) {
  const std::vector<double> drawn = to_doubles(run_op(op, {ints({5})}, with_dtype(dtype)).at(0));
  ASSERT_EQ(drawn.size(), expected.size());
  for (size_t i = 0; i < drawn.size(); ++i) {
    EXPECT_NEAR(drawn[i], expected[i], 1e-7 * std::abs(expected[i]))
        << op << " " << dtype << " " << i;
  }
}

TEST(Random, UniformNumbersEqualTensorFlow) {
  expect_numbers("RandomUniform", f32,
                 {0.9522714614868164, 0.6774077415466309, 0.7953182458877563, 0.7557817697525024,
                  0.475955605506897});
  expect_numbers("RandomUniform", f64,
                 {0.6181726095777149, 0.36254602252651336, 0.8076457653772362, 0.4881631901754211,
                  0.6897747269334924});
  expect_numbers("RandomUniform", f16,
                 {0.0078125, 0.32421875, 0.2470703125, 0.3642578125, 0.0283203125});
  expect_numbers("RandomUniform", bf16, {0.0625, 0.59375, 0.9765625, 0.9140625, 0.2265625});
}

TEST(Random, NormalNumbersEqualTensorFlow) {
  expect_numbers("RandomStandardNormal", f32,
                 {-0.2807750701904297, -0.13775210082530975, -0.6763296127319336,
                  0.024580413475632668, -0.8935845494270325});
  expect_numbers("RandomStandardNormal", f64,
                 {0.7456244549943906, -0.6371964266311646, 0.04856931364585292, -0.6518469707884212,
                  -0.861626965289776});
  expect_numbers(
      "RandomStandardNormal", f16,
      {-0.28076171875, -0.1376953125, -0.67626953125, 0.0245819091796875, -0.8935546875});
  expect_numbers("RandomStandardNormal", bf16,
                 {-0.28125, -0.1376953125, -0.67578125, 0.0245361328125, -0.89453125});
}

TEST(Random, TruncatedNormalNumbersEqualTensorFlow) {
  expect_numbers("TruncatedNormal", f32,
                 {-0.2807750701904297, -0.13775210082530975, -0.6763296127319336,
                  0.024580413475632668, -0.4684547185897827});
  expect_numbers("TruncatedNormal", f64,
                 {0.7456244549943906, -0.6371964266311646, 1.0386338435537557, 0.8440623680320994,
                  -0.10011952002828886});
  expect_numbers(
      "TruncatedNormal", f16,
      {-0.28076171875, -0.1376953125, -0.67626953125, 0.0245819091796875, -0.468505859375});
  expect_numbers("TruncatedNormal", bf16,
                 {-0.28125, -0.1376953125, -0.67578125, 0.0245361328125, -0.46875});
}

TEST(Random, IntegersEqualTensorFlow) {
  const auto draw = [](Tensor low, Tensor high) {
    return to_doubles(run_op("RandomUniformInt", {ints({5}), low, high}, seeds).at(0));
  };
  EXPECT_EQ(draw(Tensor::scalar<int32_t>(-1000), Tensor::scalar<int32_t>(1000)),
            (std::vector<double>{-928, 644, -507, 589, -59}));
  EXPECT_EQ(draw(Tensor::scalar<int64_t>(-1000), Tensor::scalar<int64_t>(1000)),
            (std::vector<double>{-304, 837, -411, 636, -839}));
  expect_error_with(Code::invalid_argument, "Need minval < maxval, got 3 >= 3",
                    [&] { draw(Tensor::scalar<int32_t>(3), Tensor::scalar<int32_t>(3)); });
}

TEST(Random, SeveralThreadsDrawWhatOneThreadDraws) {
  for (const char* op : {"RandomUniform", "RandomStandardNormal", "TruncatedNormal"}) {
    for (const DType dtype : {f32, f64}) {
      const Tensor alone = run_op(op, {ints({3, 20001})}, with_dtype(dtype), test_cpu(1)).at(0);
      const Tensor shared = run_op(op, {ints({3, 20001})}, with_dtype(dtype), test_cpu(3)).at(0);
      EXPECT_EQ(to_doubles(alone), to_doubles(shared)) << op << " " << dtype;
    }
  }
}

TEST(Random, MomentsMatchTheDistribution) {
  struct Expected {
    const char* op;
    double mean, variance, low, high;
  };
  // A standard normal number within [-2, 2] has variance 1 - 4 φ(2) / (2 Φ(2) - 1) = 0.77374.
  for (const Expected& e : {Expected{"RandomUniform", 0.5, 1.0 / 12, 0, 1},
                            Expected{"RandomStandardNormal", 0, 1, -8, 8},
                            Expected{"TruncatedNormal", 0, 0.77374, -2, 2}}) {
    const std::vector<double> x = to_doubles(run_op(e.op, {ints({200000})}, with_dtype(f32)).at(0));
    double sum = 0, squares = 0;
    for (const double value : x) {
      ASSERT_TRUE(value >= e.low && value < e.high) << e.op << " " << value;
      sum += value;
      squares += value * value;
    }
    const double mean = sum / x.size();
    EXPECT_NEAR(mean, e.mean, 0.01) << e.op;
    EXPECT_NEAR(squares / x.size() - mean * mean, e.variance, 0.01) << e.op;
  }
}

TEST(Random, WithoutSeedsTwoNodesDrawDifferentNumbers) {
  const AttrMap none = {{"dtype", f32}};
  EXPECT_NE(to_doubles(run_op("RandomUniform", {ints({8})}, none).at(0)),
            to_doubles(run_op("RandomUniform", {ints({8})}, none).at(0)));
}

TEST(Random, ChoicesEqualTensorFlow) {
  const float infinity = std::numeric_limits<float>::infinity();
  EXPECT_EQ(
      to_doubles(run_op("Multinomial",
                        {floats({2, 3}, {0, 1, 2, 3, -infinity, 1}), Tensor::scalar(6)}, seeds)[0]),
      (std::vector<double>{2, 2, 2, 2, 2, 2, 0, 0, 0, 0, 0, 0}));
  EXPECT_EQ(to_doubles(run_op("RandomShuffle", {longs({0, 1, 2, 3, 4, 5, 6})}, seeds)[0]),
            (std::vector<double>{6, 5, 1, 4, 0, 2, 3}));
}

TEST(Random, ChoicesFollowTheirProbabilities) {
  const int32_t n = 20000;
  const std::vector<double> drawn = to_doubles(
      run_op("Multinomial", {floats({1, 2}, {0, std::log(3.0f)}), Tensor::scalar(n)}, seeds)[0]);
  double ones = 0;
  for (double choice : drawn) ones += choice;
  EXPECT_NEAR(ones / n, 0.75, 0.02);
}

TEST(Random, GammaAndPoissonMomentsMatchTheDistribution) {
  const auto expect_moments = [](const char* op, double parameter, double mean, double variance) {
    AttrMap attrs = seeds;
    if (std::string_view(op) == "RandomPoissonV2") attrs["dtype"] = f64;
    const std::vector<double> x =
        to_doubles(run_op(op, {ints({100000}), Tensor::scalar(parameter)}, attrs).at(0));
    double sum = 0, squares = 0;
    for (const double value : x) {
      ASSERT_GE(value, 0) << op;
      sum += value;
      squares += value * value;
    }
    const double m = sum / static_cast<double>(x.size());
    EXPECT_NEAR(m, mean, 0.02 * mean) << op << " " << parameter;
    EXPECT_NEAR(squares / static_cast<double>(x.size()) - m * m, variance, 0.05 * variance)
        << op << " " << parameter;
  };
  for (const double alpha : {0.3, 1.0, 2.5, 40.0})
    expect_moments("RandomGamma", alpha, alpha, alpha);
  for (const double rate : {0.5, 9.0, 10.0, 100.0})
    expect_moments("RandomPoissonV2", rate, rate, rate);
}

// By central differences of the distribution function, at quantiles: F(alpha, x) stays constant.
TEST(Random, GammaDerivativeKeepsTheQuantile) {
  for (const double alpha : {0.4, 1.0, 3.0, 20.0}) {
    for (const double x : {0.1 * alpha, 0.8 * alpha, 2 * alpha + 1}) {
      const double step = 1e-5;
      const auto p = [](double a, double at) {
        return to_doubles(run_op("Igamma", {Tensor::scalar(a), Tensor::scalar(at)})[0])[0];
      };
      const double by_alpha = (p(alpha + step, x) - p(alpha - step, x)) / (2 * step);
      const double by_x = (p(alpha, x + step) - p(alpha, x - step)) / (2 * step);
      const double slope =
          to_doubles(run_op("RandomGammaGrad", {Tensor::scalar(alpha), Tensor::scalar(x)})[0])[0];
      EXPECT_NEAR(slope, -by_alpha / by_x, 1e-4 * std::abs(slope)) << alpha << " " << x;
    }
  }
}

// For one number, by implicit differentiation: F(y) = (P(y) - P(a)) / (P(b) - P(a)).
TEST(Random, TruncatedNormalDerivativeKeepsTheQuantile) {
  Graph graph;
  const auto number = [&](double value) { return constant(graph, Tensor::scalar(value)); };
  const std::vector<Output> parameters = {number(0.5), number(2), number(-1), number(3)};
  const Output y = op("StatelessParameterizedTruncatedNormal",
                      {constant(graph, ints({1})), constant(graph, longs({1, 2})), parameters[0],
                       parameters[1], parameters[2], parameters[3]});
  std::vector<Output> fetches = gradients({y}, parameters);
  fetches.push_back(y);
  const std::vector<Tensor> values = evaluate(fetches);
  const auto normalized = [](double x) { return (x - 0.5) / 2; };
  const auto distribution = [](double x) { return std::erfc(-x * std::sqrt(0.5)) / 2; };
  const auto density = [](double x) { return std::exp(-x * x / 2); };
  const double at = normalized(to_doubles(values[4])[0]), low = normalized(-1),
               high = normalized(3);
  const double quantile =
      (distribution(at) - distribution(low)) / (distribution(high) - distribution(low));
  EXPECT_NEAR(to_doubles(values[0])[0], 1, 1e-12);
  EXPECT_NEAR(to_doubles(values[1])[0], at, 1e-12);
  EXPECT_NEAR(to_doubles(values[2])[0], (1 - quantile) * density(low) / density(at), 1e-12);
  EXPECT_NEAR(to_doubles(values[3])[0], quantile * density(high) / density(at), 1e-12);
}

TEST(Random, StatelessGammaGradientSumsOverNumbersOfOneAlpha) {
  Graph graph;
  const Output alpha = constant(graph, floats({0.5F, 3}));
  const Output y = op("StatelessRandomGammaV2",
                      {constant(graph, ints({4, 2})), constant(graph, longs({1, 2})), alpha});
  const Output slopes = op("RandomGammaGrad", {alpha, y});
  const std::vector<Tensor> values = evaluate({gradients({y}, {alpha})[0], slopes});
  const std::vector<double> by_alpha = to_doubles(values[0]), all = to_doubles(values[1]);
  ASSERT_EQ(values[0].shape(), (Shape{2}));
  for (size_t i : {0, 1})
    EXPECT_NEAR(by_alpha[i], all[i] + all[i + 2] + all[i + 4] + all[i + 6], 1e-5);
}

TEST(Random, RejectsChoicesAmongNoClasses) {
  expect_error_with(Code::invalid_argument, "num_classes should be positive", [] {
    run_op("Multinomial", {floats({1, 0}, {}), Tensor::scalar(1)}, seeds);
  });
}

}  // namespace
}  // namespace leat
