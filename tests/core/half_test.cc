// Every bit pattern of the 16-bit floats, against arithmetic in double.
#include "core/half.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <random>

namespace leat {
namespace {

// The value of `bits` by definition, in a format with so many exponent and mantissa bits.
double by_definition(uint16_t bits, int exponent_bits, int mantissa_bits) {
  const int sign = bits >> 15;
  const int exponent = (bits >> mantissa_bits) & ((1 << exponent_bits) - 1);
  const int mantissa = bits & ((1 << mantissa_bits) - 1);
  const int bias = (1 << (exponent_bits - 1)) - 1;
  const double fraction = std::ldexp(mantissa, -mantissa_bits);
  double value = 0;
  if (exponent == (1 << exponent_bits) - 1) {
    value = mantissa == 0 ? std::numeric_limits<double>::infinity()
                          : std::numeric_limits<double>::quiet_NaN();
  } else {
    value =
        exponent == 0 ? std::ldexp(fraction, 1 - bias) : std::ldexp(1 + fraction, exponent - bias);
  }
  return sign != 0 ? -value : value;
}

template <class T>
void expect_every_pattern_is_right(int exponent_bits, int mantissa_bits) {
  for (uint32_t bits = 0; bits < 65536; ++bits) {
    const T value = T::from_bits(static_cast<uint16_t>(bits));
    const double expected =
        by_definition(static_cast<uint16_t>(bits), exponent_bits, mantissa_bits);
    const float widened = value;
    if (std::isnan(expected)) {
      ASSERT_TRUE(std::isnan(widened)) << bits;
      ASSERT_TRUE(std::isnan(static_cast<float>(T(widened)))) << bits;
    } else {
      ASSERT_EQ(static_cast<double>(widened), expected) << bits;
      ASSERT_EQ(std::signbit(widened), std::signbit(expected)) << bits;
      ASSERT_EQ(T(widened).bits, bits);
    }
  }
}

// The nearer of two neighbours; in the middle, the even one.
template <class T>
void expect_rounding_to_nearest_even(uint16_t last_finite) {
  for (uint32_t bits = 0; bits < last_finite; ++bits) {
    const double low = static_cast<float>(T::from_bits(static_cast<uint16_t>(bits)));
    const double high = static_cast<float>(T::from_bits(static_cast<uint16_t>(bits + 1)));
    const auto middle = static_cast<float>((low + high) / 2);
    ASSERT_EQ(T(middle).bits, bits % 2 == 0 ? bits : bits + 1) << bits;
    ASSERT_EQ(T(std::nextafter(middle, 0.0f)).bits, bits);
    ASSERT_EQ(T(std::nextafter(middle, std::numeric_limits<float>::infinity())).bits, bits + 1);
    ASSERT_EQ(T(-middle).bits, (bits % 2 == 0 ? bits : bits + 1) | 0x8000u);
  }
}

TEST(Half, ConvertsEveryPattern) { expect_every_pattern_is_right<half>(5, 10); }
TEST(Half, RoundsToNearestEven) { expect_rounding_to_nearest_even<half>(0x7bff); }
TEST(Half, OverflowsToInfinity) {
  EXPECT_EQ(half(65504.0f).bits, 0x7bff);
  EXPECT_EQ(half(65519.0f).bits, 0x7bff);
  EXPECT_EQ(half(65520.0f).bits, 0x7c00);
  EXPECT_EQ(half(1e30f).bits, 0x7c00);
  EXPECT_EQ(half(-1e30f).bits, 0xfc00);
}

TEST(Bfloat16, ConvertsEveryPattern) { expect_every_pattern_is_right<bfloat16>(8, 7); }
TEST(Bfloat16, RoundsToNearestEven) { expect_rounding_to_nearest_even<bfloat16>(0x7f7f); }
TEST(Bfloat16, OverflowsToInfinity) {
  EXPECT_EQ(bfloat16(std::numeric_limits<float>::max()).bits, 0x7f80);
  EXPECT_EQ(bfloat16(-std::numeric_limits<float>::max()).bits, 0xff80);
}

}  // namespace
}  // namespace leat
