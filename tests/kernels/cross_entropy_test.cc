// Softmax and its losses beyond their examples: extreme logits, many columns, all types, invalid
// labels.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "kernels/examples.h"
#include "tests/support/expect_error.h"
#include "tests/support/run_op.h"

namespace leat {
namespace {

Tensor logits(DType dtype, int64_t rows, int64_t columns) {
  std::vector<double> values;
  for (int64_t i = 0; i < rows * columns; ++i)
    values.push_back(static_cast<double>(i * 7 % 33 - 16) / 8);
  return from_doubles(dtype, {rows, columns}, values);
}

TEST(Softmax, MatchesTheFormulaForEveryWidthAndType) {
  for (const DType dtype : {f32, f64, f16, bf16}) {
    const double tolerance = dtype == bf16 ? 4e-3 : dtype == f16 ? 5e-4 : 1e-6;
    for (const int64_t columns : {1, 3, 16, 33, 5000}) {
      const Tensor x = logits(dtype, 3, columns);
      const std::vector<double> in = to_doubles(x),
                                y = to_doubles(run_op("Softmax", {x}, {}, test_cpu(2)).at(0)),
                                log_y =
                                    to_doubles(run_op("LogSoftmax", {x}, {}, test_cpu(2)).at(0));
      for (int64_t r = 0; r < 3; ++r) {
        double sum = 0;
        for (int64_t c = 0; c < columns; ++c) sum += std::exp(in[r * columns + c]);
        for (int64_t c = r * columns; c < (r + 1) * columns; ++c) {
          EXPECT_NEAR(y[c], std::exp(in[c]) / sum, tolerance) << dtype << " " << columns;
          EXPECT_NEAR(log_y[c], in[c] - std::log(sum), tolerance * 10) << dtype << " " << columns;
        }
      }
    }
  }
}

TEST(Softmax, LargeLogitsDoNotOverflow) {
  const Tensor y = run_op("Softmax", {floats({1, 3}, {1000, 1000, -1000})}).at(0);
  EXPECT_EQ(to_doubles(y), (std::vector<double>{0.5, 0.5, 0}));
  const Tensor nan =
      run_op("Softmax", {floats({1, 2}, {std::numeric_limits<float>::quiet_NaN(), 0})}).at(0);
  for (const double value : to_doubles(nan)) EXPECT_TRUE(std::isnan(value));
}

TEST(CrossEntropy, SparseAgreesWithOneHotLabels) {
  for (const DType dtype : {f32, f64, f16, bf16}) {
    const int64_t rows = 100, columns = 7;  // several blocks
    const Tensor x = logits(dtype, rows, columns);
    Tensor classes(i64, {rows});
    std::vector<double> one_hot(rows * columns);
    for (int64_t r = 0; r < rows; ++r) {
      classes.data<int64_t>()[r] = r * 3 % columns;
      one_hot[r * columns + r * 3 % columns] = 1;
    }
    const auto sparse =
        run_op("SparseSoftmaxCrossEntropyWithLogits", {x, classes}, {}, test_cpu(2));
    const auto dense =
        run_op("SoftmaxCrossEntropyWithLogits", {x, from_doubles(dtype, {rows, columns}, one_hot)});
    for (int output : {0, 1}) {
      const std::vector<double> a = to_doubles(sparse[output]), b = to_doubles(dense[output]);
      for (size_t i = 0; i < a.size(); ++i)
        ASSERT_NEAR(a[i], b[i], dtype == bf16 ? 2e-2 : 2e-3) << dtype << " " << i;
    }
  }
}

TEST(CrossEntropy, BroadcastsOneRowOfLabels) {
  const auto both = run_op("SoftmaxCrossEntropyWithLogits",
                           {floats({2, 2}, {0, 0, 1, 0}), floats({1, 2}, {0, 1})});
  const std::vector<double> loss = to_doubles(both[0]);
  EXPECT_NEAR(loss[0], 0.6931472, 1e-6);
  EXPECT_NEAR(loss[1], 1.3132617, 1e-6);
}

TEST(CrossEntropy, NamesInvalidLabels) {
  const Tensor x = floats({2, 3}, {0, 0, 0, 0, 0, 0});
  expect_error_with(
      Code::invalid_argument,
      "Received a label value of 3 which is outside the valid range of [0, 3); it is label 1 of 2",
      [&] {
        run_op("SparseSoftmaxCrossEntropyWithLogits", {x, ints({0, 3})});
      });
  expect_error_with(Code::invalid_argument, "Received a label value of -1", [&] {
    run_op("SparseSoftmaxCrossEntropyWithLogits", {x, longs({-1, 0})});
  });
}

TEST(BiasAdd, GradientAgreesForAllTypesAndLayouts) {
  for (const DType dtype : {f32, f64, f16, bf16, i32, i8}) {
    for (const char* format : {"NHWC", "NCHW"}) {
      const bool last = std::string(format) == "NHWC";
      const Shape shape = {2, 3, 5};
      const int64_t channels = last ? 5 : 3;
      std::vector<double> values(30), bias(channels), sums(channels);
      for (int i = 0; i < 30; ++i) values[i] = i % 11;
      for (int64_t c = 0; c < channels; ++c) bias[c] = static_cast<double>(c) + 1;
      std::vector<double> expected = values;
      for (int i = 0; i < 30; ++i) {
        const int64_t channel = last ? i % 5 : i / 5 % 3;
        expected[i] += bias[channel];
        sums[channel] += values[i];
      }
      const Tensor x = from_doubles(dtype, shape, values);
      const AttrMap attrs = {{"data_format", format}};
      EXPECT_EQ(
          to_doubles(run_op("BiasAdd", {x, from_doubles(dtype, {channels}, bias)}, attrs).at(0)),
          expected)
          << dtype;
      EXPECT_EQ(to_doubles(run_op("BiasAddGrad", {x}, attrs).at(0)), sums) << dtype;
    }
  }
}

}  // namespace
}  // namespace leat
