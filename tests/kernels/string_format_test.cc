// Tensors as text: numbers, and empty tensors of huge extents.
#include <gtest/gtest.h>

#include <limits>

#include "kernels/examples.h"
#include "tests/support/expect_error.h"
#include "tests/support/run_op.h"

namespace leat {
namespace {

std::string shown(const Tensor& tensor, int64_t summarize) {
  return run_op("StringFormat", {tensor}, {{"summarize", summarize}})[0].item<std::string>();
}

TEST(StringFormat, PrintsEmptyRows) {
  EXPECT_EQ(shown(Tensor(f32, {2, 0}), -1), "[[]\n []]");
  EXPECT_EQ(shown(Tensor(f32, {int64_t{1} << 40, 0}), 1), "[[]\n ...\n []]");
  for (const int64_t summarize : {int64_t{-1}, int64_t{1} << 30}) {
    expect_error_with(Code::resource_exhausted,
                      "the text of a tensor of shape [1099511627776,0] would have", [&] {
                        shown(Tensor(f32, {int64_t{1} << 40, 0}), summarize);
                      });
  }
}

TEST(StringFormat, AcceptsAnySummarize) {
  EXPECT_EQ(shown(floats({1, 2, 3}), std::numeric_limits<int64_t>::max()), "[1 2 3]");
}

// As many digits as distinguish a number from its neighbours, also in Assert's message.
TEST(StringFormat, NumbersReadBackExactly) {
  const Tensor x = floats({0.1f, 1.0f / 3, 123456789.0f, 2.5f});
  EXPECT_EQ(shown(x, -1), "[0.1 0.333333343 123456792 2.5]");
  expect_error_with(Code::invalid_argument, "[0.1 0.333333343 123456792 2.5]", [&] {
    run_op("Assert", {Tensor::scalar(false), x}, {{"summarize", 4}});
  });
}

}  // namespace
}  // namespace leat
