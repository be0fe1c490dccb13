// Operands of products as a library rounds them if it may take TensorFloat-32.
#pragma once

#include <bit>
#include <cstdint>
#include <type_traits>

namespace leat {

// Of float32: 10 bits of mantissa, rounded to the nearest; other types, and if not asked for, as
// is.
template <class T>
double as_operand(T value, bool takes_tf32) {
  if constexpr (std::is_same_v<T, float>) {
    if (takes_tf32 && value - value == 0) {
      constexpr uint32_t dropped = 0x1fff;
      const auto bits = std::bit_cast<uint32_t>(value);
      return std::bit_cast<float>((bits + (dropped >> 1) + (bits >> 13 & 1)) & ~dropped);
    }
  }
  return static_cast<double>(value);
}

}  // namespace leat
