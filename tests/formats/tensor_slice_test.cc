#include "graph/formats/tensor_slice.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/support/expect_error.h"

namespace leat {
namespace {

std::string hex(std::string_view bytes) {
  std::string out;
  for (const unsigned char byte : bytes) {
    char digits[4];
    std::snprintf(digits, sizeof digits, "%s%02x", out.empty() ? "" : " ", byte);
    out += digits;
  }
  return out;
}

// The key's last number, for a slice `start,0`.
std::string signed_bytes(int64_t value) {
  const std::string key = slice_key("", {{{value, 0}}});
  return hex(std::string_view(key).substr(5, key.size() - 6));
}

TEST(TensorSlice, KeysEqualTensorFlow) {
  EXPECT_EQ(hex(slice_key("w", TensorSlice::parse("5,5:-"))), "00 77 00 01 01 02 85 85 80 7f");
  EXPECT_EQ(signed_bytes(-65), "3f bf");
  EXPECT_EQ(signed_bytes(-1), "7f");
  EXPECT_EQ(signed_bytes(0), "80");
  EXPECT_EQ(signed_bytes(63), "bf");
  EXPECT_EQ(signed_bytes(64), "c0 40");
  EXPECT_EQ(signed_bytes(8192), "e0 20 00");
  EXPECT_EQ(signed_bytes(INT64_MAX), "ff c0 7f ff ff ff ff ff ff ff");
  EXPECT_EQ(signed_bytes(INT64_MIN), "00 3f 80 00 00 00 00 00 00 00");
}

TEST(TensorSlice, PrintsKeysReadably) {
  const std::string name("a\0\1\xff", 4);
  EXPECT_EQ(readable_key(name), "'" + name + "'");
  EXPECT_EQ(readable_key(slice_key(name, TensorSlice::parse("5,5:-"))), "a part of '" + name + "'");
}

TEST(TensorSlice, KeysSortLikeNumbers) {
  std::string last;
  for (const int64_t value :
       {int64_t{-1} << 60, int64_t{-70000}, int64_t{-64}, int64_t{-1}, int64_t{0}, int64_t{63},
        int64_t{64}, int64_t{8191}, int64_t{8192}, int64_t{1} << 40}) {
    const std::string key = slice_key("w", {{{value, 1}}});
    EXPECT_LT(last, key) << value;
    last = key;
  }
}

TEST(TensorSlice, ParsesTheTextOfSaveV2) {
  const ShapeAndSlice part = ShapeAndSlice::parse("10 20 0,5:-");
  EXPECT_EQ(part.full, (Shape{10, 20}));
  EXPECT_EQ(part.slice.to_string(), "0,5:-");
  EXPECT_EQ(part.slice.resolved(part.full).shape(), (Shape{5, 20}));
  EXPECT_FALSE(part.slice.covers(part.full));
  EXPECT_TRUE(TensorSlice::parse("0,10:-").covers({10, 20}));
  EXPECT_EQ(part.to_string(), "10 20 0,5:-");
  EXPECT_TRUE(ShapeAndSlice::parse("").is_whole);
  EXPECT_EQ(ShapeAndSlice{}.to_string(), "");
  for (const char* bad : {"10 20 0,5", "10 0,11", "10 x", "10 3", "10 5,6", "10 -1,2"})
    expect_error_with(Code::invalid_argument, "", [&] { ShapeAndSlice::parse(bad); });
}

TEST(TensorSlice, RejectsRangesOutsideTheTensor) {
  for (const TensorSlice::Extent bad : {TensorSlice::Extent{-1, 1}, {INT64_MIN, 3}, {11, 0}}) {
    expect_error_with(Code::invalid_argument, "does not lie within [10]",
                      [&] { TensorSlice{{bad}}.resolved({10}); });
  }
}

TEST(TensorSlice, CopiesTheCommonElementsOfTwoParts) {
  // Rows 1 to 3 and columns 0 to 2 of a 4 × 3 matrix into rows 2 to 4.
  const Tensor from = Tensor::of<int32_t>({2, 2}, {10, 11, 20, 21});
  Tensor to = Tensor::of<int32_t>({2, 3}, {0, 0, 0, 0, 0, 0});
  const TensorSlice have{{{1, 2}, {0, 2}}}, want{{{2, 2}, {0, 3}}};
  EXPECT_EQ(common_elements(have, want), 2);
  copy_common(from, have, to, want);
  EXPECT_EQ(to.to_string(), Tensor::of<int32_t>({2, 3}, {20, 21, 0, 0, 0, 0}).to_string());
  EXPECT_EQ(common_elements(have, {{{3, 2}, {0, 3}}}), 0);
}

}  // namespace
}  // namespace leat
