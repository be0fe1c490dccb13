// Arithmetic on extents that come from the user.
#pragma once

#include <cstdint>

#include "core/error.h"

namespace leat {

// INVALID_ARGUMENT if the product does not fit into 64 bits.
inline int64_t product_of_extents(int64_t a, int64_t b) {
  int64_t out = 0;
  check(!__builtin_mul_overflow(a, b, &out), a, " * ", b, " elements are too many");
  return out;
}

}  // namespace leat
