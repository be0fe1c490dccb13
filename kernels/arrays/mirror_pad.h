// Where a mirroring border takes its elements from, for the kernels on both devices.
#pragma once

#include <cstdint>

namespace leat {

// Along one axis: the index within the n inner elements that index `padded` mirrors, with `before`
// elements of border in front. `edge` is 1 if the border repeats the edge (SYMMETRIC), else 0.
constexpr int64_t mirrored(int64_t padded, int64_t before, int64_t n, int64_t edge) {
  int64_t from = padded - before;
  if (from < 0) from = -from - edge;
  if (from >= n) from = 2 * (n - 1) - from + edge;
  return from;
}

}  // namespace leat
