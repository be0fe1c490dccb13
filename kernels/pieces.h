// Long writes that check between pieces whether their step has ended.
#pragma once

#include <algorithm>
#include <cstdint>

#include "core/execution/step_end.h"

namespace leat {

template <class T>
void fill_in_pieces(T* to, int64_t n, const T& value) {
  constexpr int64_t piece = std::max<int64_t>(1, (4 << 20) / static_cast<int64_t>(sizeof(T)));
  for (int64_t at = 0; at < n; at += piece) {
    StepEnd::ask();
    std::fill_n(to + at, std::min(piece, n - at), value);
  }
}

}  // namespace leat
