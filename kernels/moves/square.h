// A square of elements in vector registers, a row in each.
#pragma once

#include <utility>

#include "kernels/cpu.h"

namespace leat {

template <class T, int side>
struct RowOf {
  using type [[gnu::vector_size(side * sizeof(T))]] = T;
  using anywhere [[gnu::vector_size(side * sizeof(T)), gnu::aligned(1), gnu::may_alias]] = T;
};

// Of the squares of `step` elements in rows a and b, one `step` below the other, those off the
// diagonal change places.
template <int step, class Row, size_t... j>
LEAT_INLINE inline void exchange(Row& a, Row& b, std::index_sequence<j...>) {
  constexpr int side = sizeof...(j);
  const Row above =
      __builtin_shufflevector(a, b, (j & step ? side + static_cast<int>(j) - step : int{j})...);
  b = __builtin_shufflevector(a, b, (j & step ? side + static_cast<int>(j) : int{j} + step)...);
  a = above;
}

// Transposes the square: rows[i][j] and rows[j][i] change places. Leave `step` out.
template <int step = 1, int side, class Row>
LEAT_INLINE inline void turn(Row (&rows)[side]) {
  if constexpr (step < side) {
    for (int i = 0; i < side; ++i) {
      if ((i & step) == 0)
        exchange<step>(rows[i], rows[i + step], std::make_index_sequence<side>{});
    }
    turn<2 * step>(rows);
  }
}

}  // namespace leat
