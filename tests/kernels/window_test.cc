// Windows, and positions of their elements, that do not fit into the image.
#include <gtest/gtest.h>

#include <limits>

#include "kernels/examples.h"
#include "tests/support/expect_error.h"
#include "tests/support/run_op.h"

namespace leat {
namespace {

Tensor pooled(int64_t size, int64_t window, int64_t stride) {
  return run_op("AvgPool", {Tensor(f32, {1, size, 4, 1})},
                {{"ksize", std::vector<int64_t>{1, window, 1, 1}},
                 {"strides", std::vector<int64_t>{1, stride, 1, 1}},
                 {"padding", "VALID"}})[0];
}

TEST(Window, LessThanTwoStridesTooLargeGivesAnEmptyOutput) {
  EXPECT_EQ(pooled(2, 3, 2).shape(), Shape({1, 0, 4, 1}));
  EXPECT_EQ(pooled(2, 5, 2).shape(), Shape({1, 0, 4, 1}));
  expect_error_with(Code::invalid_argument, "a window of 6 does not fit into an input of 2",
                    [] { pooled(2, 6, 2); });
}

// A position that is not rejected would be written beyond the tensor. (TensorFlow ends its
// process.)
TEST(Window, RejectsPositionsOutsideTheImage) {
  const auto gradient = [](std::initializer_list<int64_t> places, bool in_batch) {
    return run_op(
        "MaxPoolGradWithArgmax",
        {Tensor(f32, {2, 1, 3, 1}), floats({2, 1, 1, 1}, {1, 2}), longs({2, 1, 1, 1}, places)},
        {{"ksize", std::vector<int64_t>{1, 1, 3, 1}},
         {"strides", std::vector<int64_t>{1, 1, 1, 1}},
         {"padding", "VALID"},
         {"include_batch_in_index", in_batch}})[0];
  };
  EXPECT_EQ(to_doubles(gradient({2, 0}, false)), (std::vector<double>{0, 0, 1, 2, 0, 0}));
  EXPECT_EQ(to_doubles(gradient({2, 5}, true)), (std::vector<double>{0, 0, 1, 0, 0, 2}));
  const int64_t largest = std::numeric_limits<int64_t>::max();
  for (const int64_t wrong : {int64_t{-1}, int64_t{3}, largest, -largest - 1}) {
    expect_error_with(Code::invalid_argument, "the places from 0 to 2", [&] {
      gradient({0, wrong}, false);
    });
  }
  for (const int64_t wrong : {int64_t{2}, int64_t{6}, largest, -largest - 1}) {
    expect_error_with(Code::invalid_argument, "the places from 3 to 5", [&] {
      gradient({0, wrong}, true);
    });
  }
}

// As in TensorFlow: where there is nothing to compute, nothing is rejected.
TEST(Window, AcceptsEmptyFiltersOfEmptyOutputs) {
  const auto shape = [](const char* op, const Shape& x, const Shape& filter) {
    return run_op(op, {Tensor(f32, x), Tensor(f32, filter)},
                  {{"strides", std::vector<int64_t>{1, 1, 1, 1}}, {"padding", "SAME"}})[0]
        .shape();
  };
  EXPECT_EQ(shape("Conv2D", {1, 3, 3, 2}, {1, 1, 2, 0}), Shape({1, 3, 3, 0}));
  EXPECT_EQ(shape("Conv2D", {0, 3, 3, 2}, {0, 1, 2, 1}), Shape({0, 3, 3, 1}));
  EXPECT_EQ(shape("DepthwiseConv2dNative", {1, 3, 3, 0}, {2, 2, 0, 1}), Shape({1, 3, 3, 0}));
  EXPECT_EQ(shape("DepthwiseConv2dNative", {1, 3, 3, 2}, {0, 2, 2, 1}), Shape({1, 3, 3, 2}));
  expect_error_with(Code::invalid_argument, "filter must not have zero elements", [&] {
    shape("Conv2D", {1, 3, 3, 2}, {0, 1, 2, 1});
  });
}

}  // namespace
}  // namespace leat
