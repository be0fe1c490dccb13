// Extents that come from the user: arithmetic, and shapes with another number of rows.
#pragma once

#include <cstdint>

#include "core/error.h"
#include "core/shape.h"

namespace leat {

// INVALID_ARGUMENT if the product does not fit into 64 bits.
inline int64_t product_of_extents(int64_t a, int64_t b) {
  int64_t out = 0;
  check(!__builtin_mul_overflow(a, b, &out), a, " * ", b, " elements are too many");
  return out;
}

// `count` rows of data, whose first `axes` axes say which row it is.
inline Shape rows_of(int64_t count, const Shape& data, int axes = 1) {
  Shape out{count};
  for (int i = axes; i < data.rank(); ++i) out.push_back(data[i]);
  return out;
}

}  // namespace leat
