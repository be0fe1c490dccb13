// IEEE half and bfloat16 as storage types: arithmetic happens in float, and each result is rounded
// to nearest even. Plain bit arithmetic, so g++ and nvcc (with --expt-relaxed-constexpr) compile
// the same code.
#pragma once

#include <bit>
#include <cstdint>

namespace leat {

struct bfloat16 {
  uint16_t bits = 0;

  bfloat16() = default;
  // NOLINT: implicit on purpose, like float
  constexpr bfloat16(float value) : bits(round(value)) {}
  constexpr operator float() const {
    return std::bit_cast<float>(static_cast<uint32_t>(bits) << 16);
  }
  static constexpr bfloat16 from_bits(uint16_t bits) {
    bfloat16 out;
    out.bits = bits;
    return out;
  }

 private:
  static constexpr uint16_t round(float value) {
    const uint32_t word = std::bit_cast<uint32_t>(value);
    // NaN stays NaN
    if ((word & 0x7fffffffu) > 0x7f800000u) return static_cast<uint16_t>((word >> 16) | 0x40u);
    return static_cast<uint16_t>((word + 0x7fffu + ((word >> 16) & 1u)) >> 16);
  }
};

struct half {
  uint16_t bits = 0;

  half() = default;
  constexpr half(float value) : bits(round(value)) {}  // NOLINT: implicit on purpose, like float
  constexpr operator float() const { return widen(bits); }
  static constexpr half from_bits(uint16_t bits) {
    half out;
    out.bits = bits;
    return out;
  }

 private:
  // Both conversions compute what each kind of number needs and choose at the end: without
  // branches, loops become vector instructions.
  static constexpr uint16_t round(float value) {
    constexpr uint32_t smallest_normal = 0x38800000u;  // 2^-14
    const uint32_t word = std::bit_cast<uint32_t>(value);
    const uint32_t sign = (word >> 16) & 0x8000u;
    const uint32_t magnitude = word & 0x7fffffffu;
    const uint32_t odd = (magnitude >> 13) & 1u;
    const uint32_t normal = (magnitude - 0x38000000u + 0xfffu + odd) >> 13;
    // Adding 0.5 aligns the mantissa so that the float unit rounds to nearest even for us.
    const uint32_t small = magnitude < smallest_normal ? magnitude : smallest_normal;
    const float aligned = std::bit_cast<float>(small) + 0.5f;
    const uint32_t subnormal = std::bit_cast<uint32_t>(aligned) - 0x3f000000u;
    uint32_t bits = magnitude < smallest_normal ? subnormal : normal;
    bits = magnitude >= 0x477ff000u ? 0x7c00u : bits;  // rounds to infinity
    bits = magnitude > 0x7f800000u ? 0x7e00u : bits;   // NaN
    return static_cast<uint16_t>(sign | bits);
  }
  static constexpr float widen(uint16_t bits) {
    constexpr uint32_t rebias = 112u << 23;  // from half's exponents to float's
    const uint32_t sign = static_cast<uint32_t>(bits & 0x8000u) << 16;
    const uint32_t magnitude = static_cast<uint32_t>(bits & 0x7fffu) << 13;
    const uint32_t normal = magnitude + rebias;
    // A subnormal of half is a fraction of 2^-14: the float unit takes the leading one away.
    const uint32_t fraction = (magnitude & 0x7fffffu) | (113u << 23);
    const float subnormal = std::bit_cast<float>(fraction) - std::bit_cast<float>(113u << 23);
    uint32_t word = magnitude < 0x800000u ? std::bit_cast<uint32_t>(subnormal) : normal;
    word = magnitude >= 31u << 23 ? normal + rebias : word;  // infinity and NaN
    return std::bit_cast<float>(sign | word);
  }
};

}  // namespace leat
