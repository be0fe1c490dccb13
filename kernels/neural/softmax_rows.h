// The part that softmax and the cross-entropies share, over a block of rows small enough for the
// first-level cache. Files that include it are marked fast-math-loops: exp is then one of glibc's
// vector functions.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>

#include "kernels/cpu.h"

namespace leat {

inline constexpr int64_t softmax_block_rows = 64;

inline int64_t softmax_rows_per_block(int64_t columns) {
  return std::clamp<int64_t>(4096 / std::max<int64_t>(1, columns), 1, softmax_block_rows);
}

// Rows per chunk that are worth a second thread: exp takes about 0.3 ns per element.
inline int64_t softmax_rows_per_chunk(int64_t columns) {
  return 1 + 65536 / std::max<int64_t>(1, columns);
}

// Reductions in lanes. The compiler must not create them itself: that would reorder additions.
inline constexpr int lanes = 16;

template <class C, class T>
LEAT_INLINE inline C lane_max(const T* x, int64_t n) {
  C best = C(x[0]);
  int64_t i = 0;
  if (n >= lanes) {
    C part[lanes];
    for (int l = 0; l < lanes; ++l) part[l] = C(x[l]);
    for (i = lanes; i + lanes <= n; i += lanes) {
      for (int l = 0; l < lanes; ++l) part[l] = part[l] < C(x[i + l]) ? C(x[i + l]) : part[l];
    }
    best = part[0];
    for (int l = 1; l < lanes; ++l) best = best < part[l] ? part[l] : best;
  }
  for (; i < n; ++i) best = best < C(x[i]) ? C(x[i]) : best;
  return best;
}

template <class C>
LEAT_INLINE inline C lane_sum(const C* x, int64_t n) {
  C sum = 0;
  int64_t i = 0;
  if (n >= lanes) {
    C part[lanes] = {};
    for (; i + lanes <= n; i += lanes) {
      for (int l = 0; l < lanes; ++l) part[l] += x[i + l];
    }
    for (int width = lanes / 2; width > 0; width /= 2) {
      for (int l = 0; l < width; ++l) part[l] += part[l + width];
    }
    sum = part[0];
  }
  for (; i < n; ++i) sum += x[i];
  return sum;
}

// y = exp(x - max), of one row; returns the sum of y. y may be x. What a loop writes is still in
// the first-level cache when the next one reads it.
template <class T, class C>
LEAT_INLINE inline C exponentiate(const T* x, int64_t n, C max, C* y) {
  constexpr int64_t block = 256;
  C part[lanes] = {}, sum = 0;
  for (int64_t begin = 0; begin < n; begin += block) {
    const int64_t end = std::min(n, begin + block), whole = end - (end - begin) % lanes;
    for (int64_t i = begin; i < end; ++i) y[i] = C(x[i]) - max;
    for (int64_t i = begin; i < end; ++i) y[i] = std::exp(y[i]);
    for (int64_t i = begin; i < whole; i += lanes) {
      for (int l = 0; l < lanes; ++l) part[l] += y[i + l];
    }
    for (int64_t i = whole; i < end; ++i) sum += y[i];
  }
  for (int width = lanes / 2; width > 0; width /= 2) {
    for (int l = 0; l < width; ++l) part[l] += part[l + width];
  }
  return part[0] + sum;
}

// The same row by row; max and sum have one entry per row. Short rows go through exp() together.
template <class T, class C>
LEAT_INLINE inline void exponentiate_rows(const T* x, int64_t rows, int64_t columns, C* y, C* max,
                                          C* sum) {
  constexpr int64_t short_row = 4 * lanes;
  for (int64_t r = 0; r < rows; ++r) max[r] = lane_max<C>(x + r * columns, columns);
  if (columns >= short_row) {
    for (int64_t r = 0; r < rows; ++r)
      sum[r] = exponentiate(x + r * columns, columns, max[r], y + r * columns);
    return;
  }
  for (int64_t r = 0; r < rows; ++r) {
    for (int64_t i = r * columns; i < (r + 1) * columns; ++i) y[i] = C(x[i]) - max[r];
  }
  for (int64_t i = 0; i < rows * columns; ++i) y[i] = std::exp(y[i]);
  for (int64_t r = 0; r < rows; ++r) sum[r] = lane_sum(y + r * columns, columns);
}

}  // namespace leat
