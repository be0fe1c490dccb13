// The end of a reduction in lanes. Unlike a loop over the widths, it becomes vector instructions.
#pragma once

#include "kernels/cpu.h"

namespace leat {

// values[i] = f of all elements i, i + to, i + 2 * to, … of `count`, a power of two, half by half.
template <int count, int to = 1, class T, class F>
LEAT_INLINE inline void fold_halves(T* values, F f) {
  if constexpr (count > to) {
#ifndef __clang__
#pragma GCC unroll 1  // of 16 calls in a row, gcc makes no vectors
#endif
    for (int i = 0; i < count / 2; ++i) values[i] = f(values[i], values[i + count / 2]);
    fold_halves<count / 2, to>(values, f);
  }
}

}  // namespace leat
