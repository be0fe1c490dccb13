// The part that softmax and the cross-entropies share, over a block of rows small enough for the
// first-level cache. Files that include it are marked fast-math-loops: exp of doubles is then one
// of glibc's vector functions.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <functional>

#include "kernels/fold_halves.h"
#include "kernels/half_rows.h"
#include "kernels/math/curves.h"

namespace leat {

inline constexpr int64_t softmax_block_rows = 64;

inline int64_t softmax_rows_per_block(int64_t columns) {
  return std::clamp<int64_t>(4096 / std::max<int64_t>(1, columns), 1, softmax_block_rows);
}

// Rows per chunk that are worth a second thread: exp takes about 0.3 ns per element.
inline int64_t softmax_rows_per_chunk(int64_t columns) {
  return 1 + 65536 / std::max<int64_t>(1, columns);
}

// Reductions in lanes. The compiler must not create them itself: that would reorder additions. In
// long rows they are several vectors wide: a maximum waits for the one before.
inline constexpr int lanes = 16, long_row_lanes = 64;

template <int width, class C, class T>
LEAT_INLINE inline C max_in_lanes(const T* x, int64_t n) {
  C part[width];
  for (int l = 0; l < width; ++l) part[l] = C(x[l]);
  int64_t i = width;
  for (; i + width <= n; i += width) {
    for (int l = 0; l < width; ++l) part[l] = part[l] < C(x[i + l]) ? C(x[i + l]) : part[l];
  }
  fold_halves<width>(part, [](C x, C y) LEAT_INLINE { return x < y ? y : x; });
  C best = part[0];
  for (; i < n; ++i) best = best < C(x[i]) ? C(x[i]) : best;
  return best;
}

template <class C, class T>
LEAT_INLINE inline C lane_max(const T* x, int64_t n) {
  if (n >= 2 * long_row_lanes) return max_in_lanes<long_row_lanes, C>(x, n);
  if (n >= lanes) return max_in_lanes<lanes, C>(x, n);
  C best = C(x[0]);
  for (int64_t i = 1; i < n; ++i) best = best < C(x[i]) ? C(x[i]) : best;
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
    fold_halves<lanes>(part, std::plus<C>());
    sum = part[0];
  }
  for (; i < n; ++i) sum += x[i];
  return sum;
}

// y = exp(x - max), of one row; returns the sum of y. y may be x: hence the array between them.
template <class T, class C>
LEAT_INLINE inline C exponentiate(const T* x, int64_t n, C max, C* y) {
  constexpr int at_once = 2 * lanes;
  C part[at_once] = {}, sum = 0;
  int64_t i = 0;
  for (; i + at_once <= n; i += at_once) {
    C e[at_once];
    for (int l = 0; l < at_once; ++l) e[l] = exp_of_negative(C(x[i + l]) - max);
    for (int l = 0; l < at_once; ++l) part[l] += e[l];
    for (int l = 0; l < at_once; ++l) y[i + l] = e[l];
  }
  for (; i < n; ++i) sum += y[i] = exp_of_negative(C(x[i]) - max);
  fold_halves<at_once>(part, std::plus<C>());
  return part[0] + sum;
}

// The same row by row; max and sum have one entry per row. Short rows go through exp() together.
template <class T, class C>
LEAT_INLINE inline void exponentiate_rows(const T* x, int64_t rows, int64_t columns, C* y, C* max,
                                          C* sum) {
  if constexpr (std::is_same_v<T, half>) {
    widen_row(x, rows * columns, y);
    return exponentiate_rows<C>(y, rows, columns, y, max, sum);
  }
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
  for (int64_t i = 0; i < rows * columns; ++i) y[i] = exp_of_negative(y[i]);
  for (int64_t r = 0; r < rows; ++r) sum[r] = lane_sum(y + r * columns, columns);
}

}  // namespace leat
