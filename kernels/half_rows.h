// Rows of halves as floats, with the processor's conversions where it has them; rows of any type
// for loops of their own.
#pragma once

#include <algorithm>
#include <cstdint>
#include <type_traits>

#include "core/half.h"

namespace leat {

// to[i] = from[i]; i < n.
void widen_row(const half* from, int64_t n, float* to);

// to[i] = half(from[i]): rounded to nearest even.
void narrow_row(const float* from, int64_t n, half* to);

// ---- Rows of any type: halves pass through floats, others are read and written as they are

// What a loop reads the `n` elements `from` as; `buffer` is for floats that halves become.
template <class T>
auto loaded(const T* from, int64_t n, float* buffer) {
  if constexpr (std::is_same_v<T, half>) {
    widen_row(from, n, buffer);
    return static_cast<const float*>(buffer);
  } else {
    return from;
  }
}

// Calls f(to) to write the `n` elements `to`, or f(buffer), whose floats then become halves. f gets
// its element type as that of the pointer.
template <class T, class F>
__attribute__((always_inline)) inline void store_row(T* to, int64_t n, float* buffer, F f) {
  if constexpr (std::is_same_v<T, half>) {
    f(buffer);
    narrow_row(buffer, n, to);
  } else {
    f(to);
  }
}

// Calls f(first, count) for tiles of a row, whose floats stay in the first-level cache.
inline constexpr int64_t row_tile = 512;
template <class F>
__attribute__((always_inline)) inline void for_row_tiles(int64_t n, F f) {
  for (int64_t first = 0; first < n; first += row_tile) f(first, std::min(row_tile, n - first));
}

}  // namespace leat
