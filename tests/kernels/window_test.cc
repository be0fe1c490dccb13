// Windows that do not fit into the image.
#include <gtest/gtest.h>

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

TEST(Window, TooLargeByLessThanTwoStridesLeavesAnEmptyOutput) {
  EXPECT_EQ(pooled(2, 3, 2).shape(), Shape({1, 0, 4, 1}));
  EXPECT_EQ(pooled(2, 5, 2).shape(), Shape({1, 0, 4, 1}));
  expect_error_with(Code::invalid_argument, "a window of 6 does not fit into an input of 2",
                    [] { pooled(2, 6, 2); });
}

}  // namespace
}  // namespace leat
