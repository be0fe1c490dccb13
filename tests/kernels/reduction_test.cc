// Corner cases of reductions: every split of axes, long and short, empty tensors, threads.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "kernels/examples.h"
#include "tests/support/run_op.h"

namespace leat {
namespace {

using testing::HasSubstr;

Tensor axes_of(int set, int rank) {
  std::vector<double> axes;
  for (int axis = 0; axis < rank; ++axis) {
    if (set >> axis & 1) axes.push_back(axis % 2 == 0 ? axis : axis - rank);  // negative ones too
  }
  return from_doubles(i32, {static_cast<int64_t>(axes.size())}, axes);
}

// Sums the slow way, in double.
std::vector<double> reference_sum(const Tensor& x, int set, int64_t outputs) {
  std::vector<double> out(outputs);
  const Shape& shape = x.shape();
  for (int64_t i = 0; i < x.elements(); ++i) {
    int64_t rest = i, to = 0, step = 1;
    for (int axis = shape.rank() - 1; axis >= 0; --axis) {
      const int64_t position = rest % shape[axis];
      rest /= shape[axis];
      if (set >> axis & 1) continue;
      to += position * step;
      step *= shape[axis];
    }
    out[to] += x.data<double>()[i];
  }
  return out;
}

TEST(Reduction, SumsOverAnyAxes) {
  for (const Shape& shape :
       {Shape{5}, Shape{3, 70}, Shape{70, 3}, Shape{2, 1, 5, 3}, Shape{3, 2, 600, 2},
        Shape{130, 700}, Shape{700, 610}, Shape{50'001, 3}}) {
    std::vector<double> values(shape.elements());
    for (size_t i = 0; i < values.size(); ++i) values[i] = std::sin(static_cast<double>(i));
    const Tensor x = from_doubles(f64, shape, values);
    for (int set = 0; set < 1 << shape.rank(); ++set) {
      for (int threads : {1, 3}) {
        const Tensor sum = run_op("Sum", {x, axes_of(set, shape.rank())}, {}, test_cpu(threads))[0];
        const std::vector<double> expected = reference_sum(x, set, sum.elements());
        for (int64_t i = 0; i < sum.elements(); ++i) {
          ASSERT_NEAR(sum.data<double>()[i], expected[i], 1e-9)
              << shape << ", axes " << axes_of(set, shape.rank());
        }
      }
    }
  }
}

TEST(Reduction, LongSumsAreAccurateAndEqualOnAnyNumberOfThreads) {
  Tensor x(f32, {3'000'000});
  std::fill_n(x.data<float>(), x.elements(), 0.1f);
  const float alone = run_op("Sum", {x, ints({0})})[0].item<float>();
  EXPECT_NEAR(alone, 300000.0, 0.5);  // one running sum in float would be off by thousands
  EXPECT_EQ(run_op("Sum", {x, ints({0})}, {}, test_cpu(3))[0].item<float>(), alone);
  const Tensor rows = x.reshaped({1'000'000, 3}), columns = run_op("Sum", {rows, ints({0})})[0];
  for (int64_t i = 0; i < 3; ++i) {
    EXPECT_NEAR(columns.data<float>()[i], 100000.0, 0.5);
    EXPECT_EQ(run_op("Sum", {rows, ints({0})}, {}, test_cpu(3))[0].data<float>()[i],
              columns.data<float>()[i]);
  }
}

// Rows of usual lengths are reduced several at a time.
TEST(Reduction, RowsAreReducedAsEachAlone) {
  for (const DType dtype : {f32, f64, bf16, i32, i64}) {
    for (const int64_t length : {64, 100, 517}) {
      const bool is_float = dtype != i32 && dtype != i64;
      std::vector<double> values(37 * length);
      for (size_t i = 0; i < values.size(); ++i)
        values[i] = std::round(100 * std::sin(static_cast<double>(i)));
      if (is_float) {
        for (double& value : values) value /= 7;
        values[3 * length] = values[17 * length + 63] = values[36 * length - 1] = NAN;
      }
      const Tensor x = from_doubles(dtype, {37, length}, values);
      for (const char* op : {"Sum", "Max", "Min"}) {
        const std::vector<double> all = to_doubles(run_op(op, {x, ints({1})}).at(0));
        for (int64_t row = 0; row < 37; ++row) {
          const Tensor alone =
              from_doubles(dtype, {length},
                           {values.begin() + row * length, values.begin() + (row + 1) * length});
          const double expected = to_doubles(run_op(op, {alone, ints({0})}).at(0)).at(0);
          ASSERT_EQ(std::isnan(expected), is_float && (row == 3 || row == 17 || row == 35));
          if (std::isnan(expected)) {
            EXPECT_TRUE(std::isnan(all[row])) << op << " of row " << row;
          } else {
            EXPECT_EQ(all[row], expected) << op << " of row " << row << ", " << length << " long";
          }
        }
      }
    }
  }
}

TEST(Reduction, ReducesEmptyTensors) {
  const Tensor nothing = floats({0, 3}, {});
  EXPECT_EQ(to_doubles(run_op("Sum", {nothing, ints({0})})[0]), (std::vector<double>{0, 0, 0}));
  EXPECT_EQ(to_doubles(run_op("Prod", {nothing, ints({0})})[0]), (std::vector<double>{1, 1, 1}));
  EXPECT_TRUE(std::isnan(run_op("Mean", {nothing, ints({0, 1})})[0].item<float>()));
  EXPECT_EQ(run_op("Max", {nothing, ints({0, 1})})[0].item<float>(),
            -std::numeric_limits<float>::infinity());
  EXPECT_EQ(run_op("Min", {nothing, ints({0, 1})})[0].item<float>(),
            std::numeric_limits<float>::infinity());
  EXPECT_EQ(run_op("Sum", {nothing, ints({1})})[0].shape(), Shape{0});
}

TEST(Reduction, NaNWins) {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  for (const char* op : {"Max", "Min"}) {
    for (int64_t at : {0, 50, 99}) {
      Tensor x(f32, {100});
      std::fill_n(x.data<float>(), 100, 1.0f);
      x.data<float>()[at] = nan;
      EXPECT_TRUE(std::isnan(run_op(op, {x, ints({0})})[0].item<float>())) << op << " at " << at;
    }
  }
}

TEST(Reduction, RejectsAxesOutOfRange) {
  for (int axis : {2, -3}) {
    try {
      run_op("Sum", {floats({1, 2}, {1, 2}), ints({axis})});
      FAIL() << "no error";
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), Code::invalid_argument);
      EXPECT_THAT(error.message(), HasSubstr(concat("axis ", axis)));
    }
  }
}

TEST(Reduction, SumsSixteenBitFloatsAsFloat) {
  const Tensor ones = from_doubles(bf16, {1000}, std::vector<double>(1000, 1.0));
  EXPECT_EQ(static_cast<float>(run_op("Sum", {ones, ints({0})})[0].item<bfloat16>()), 1000);
}

TEST(ArgMax, ReturnsTheFirstOfEqualElements) {
  const Tensor x = floats({2, 3}, {2, 2, 1, 0, 5, 5});
  EXPECT_EQ(to_doubles(run_op("ArgMax", {x, Tensor::scalar(1)})[0]), (std::vector<double>{0, 1}));
  EXPECT_EQ(run_op("ArgMax", {x, Tensor::scalar(1)}, {{"output_type", i32}})[0].dtype(), i32);
}

TEST(Reduction, KeepsTheSignOfASingleZero) {
  for (const char* op : {"Sum", "Mean", "Prod"}) {
    const Tensor none = run_op(op, {floats({-0.0F, 1}), Tensor(i32, {0})})[0],
                 one = run_op(op, {floats({1, 2}, {-0.0F, 1}), ints({0})})[0];
    EXPECT_TRUE(std::signbit(none.data<float>()[0])) << op;
    EXPECT_TRUE(std::signbit(one.data<float>()[0])) << op;
  }
}

}  // namespace
}  // namespace leat
