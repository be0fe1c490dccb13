// Texts of tensors that hold nothing, and a good deal of it.
#include <gtest/gtest.h>

#include <limits>

#include "kernels/examples.h"
#include "tests/support/expect_error.h"
#include "tests/support/run_op.h"

namespace leat {
namespace {

std::string shown(const Tensor& tensor, int64_t summarize) {
  return run_op("StringFormat", {tensor}, {{"summarize", summarize}})[0].value<std::string>();
}

TEST(StringFormat, RowsWithoutElements) {
  EXPECT_EQ(shown(Tensor(f32, {2, 0}), -1), "[[]\n []]");
  EXPECT_EQ(shown(Tensor(f32, {int64_t{1} << 40, 0}), 1), "[[]\n ...\n []]");
  for (const int64_t summarize : {int64_t{-1}, int64_t{1} << 30}) {
    expect_error_with(Code::resource_exhausted,
                      "empty rows, for a tensor of shape [1099511627776,0]", [&] {
                        shown(Tensor(f32, {int64_t{1} << 40, 0}), summarize);
                      });
  }
}

TEST(StringFormat, SummarizeMayBeAnyNumber) {
  EXPECT_EQ(shown(floats({1, 2, 3}), std::numeric_limits<int64_t>::max()), "[1 2 3]");
}

}  // namespace
}  // namespace leat
