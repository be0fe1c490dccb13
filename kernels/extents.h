// Extents that come from the user: arithmetic, and shapes with a different number of rows.
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>

#include "core/error.h"
#include "core/kernel.h"
#include "core/memory/host_memory.h"
#include "core/shape.h"

namespace leat {

// INVALID_ARGUMENT if the product does not fit into 64 bits.
inline int64_t product_of_extents(int64_t a, int64_t b) {
  int64_t out = 0;
  check(!__builtin_mul_overflow(a, b, &out), a, " * ", b, " elements are too many");
  return out;
}

// INVALID_ARGUMENT if the sum does not fit into 64 bits.
inline int64_t sum_of_extents(int64_t a, int64_t b) {
  int64_t out = 0;
  check(!__builtin_add_overflow(a, b, &out), a, " + ", b, " is too large for an extent");
  return out;
}

// RESOURCE_EXHAUSTED if `count` things of this size do not fit into memory: sending a large extent
// costs nothing.
inline void check_memory_for(int64_t count, uint64_t bytes_each) {
  constexpr uint64_t few = 1 << 20;  // bytes that are always allowed
  const auto n = static_cast<uint64_t>(count);
  if (n <= few / bytes_each || n <= available_host_memory() / bytes_each) return;
  fail(Code::resource_exhausted, "out of host memory: a batch of ", count, " elements of at least ",
       bytes_each, " bytes each does not fit");
}

// Whether none of these tensors has elements. Their extents may still be huge, and a loop over them
// would take forever.
inline bool are_empty(std::span<const TensorSpec> tensors) {
  return std::all_of(tensors.begin(), tensors.end(),
                     [](const TensorSpec& t) { return t.shape.elements() == 0; });
}

// `count` rows of data, whose first `axes` axes index the row.
inline Shape rows_of(int64_t count, const Shape& data, int axes = 1) {
  Shape out{count};
  for (int i = axes; i < data.rank(); ++i) out.push_back(data[i]);
  return out;
}

// "[3,4]" from "[2,3,4]"
inline Shape behind_first(const Shape& shape) { return Shape(shape.dims().subspan(1)); }

}  // namespace leat
