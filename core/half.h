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
  static constexpr uint16_t round(float value) {
    const uint32_t word = std::bit_cast<uint32_t>(value);
    const uint32_t sign = (word >> 16) & 0x8000u;
    const uint32_t magnitude = word & 0x7fffffffu;
    if (magnitude > 0x7f800000u) return static_cast<uint16_t>(sign | 0x7e00u);  // NaN
    // rounds to infinity
    if (magnitude >= 0x477ff000u) return static_cast<uint16_t>(sign | 0x7c00u);
    if (magnitude < 0x38800000u) {  // subnormal or zero
      // Adding 0.5 aligns the mantissa so that the float unit rounds to nearest even for us.
      const float aligned = std::bit_cast<float>(magnitude) + 0.5f;
      return static_cast<uint16_t>(sign | (std::bit_cast<uint32_t>(aligned) - 0x3f000000u));
    }
    const uint32_t odd = (magnitude >> 13) & 1u;
    return static_cast<uint16_t>(sign | ((magnitude - 0x38000000u + 0xfffu + odd) >> 13));
  }
  static constexpr float widen(uint16_t bits) {
    const uint32_t sign = static_cast<uint32_t>(bits & 0x8000u) << 16;
    const uint32_t exponent = (bits >> 10) & 0x1fu;
    const uint32_t mantissa = bits & 0x3ffu;
    if (exponent == 31) return std::bit_cast<float>(sign | 0x7f800000u | (mantissa << 13));
    if (exponent == 0) {
      const float magnitude = static_cast<float>(mantissa) * 5.9604644775390625e-8f;  // 2^-24
      return std::bit_cast<float>(sign | std::bit_cast<uint32_t>(magnitude));
    }
    return std::bit_cast<float>(sign | ((exponent + 112u) << 23) | (mantissa << 13));
  }
};

}  // namespace leat
