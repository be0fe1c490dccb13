// Rows of halves as floats, with the processor's conversions where it has them.
#pragma once

#include <cstdint>

#include "core/half.h"

namespace leat {

// to[i] = from[i]; i < n.
void widen_row(const half* from, int64_t n, float* to);

// to[i] = half(from[i]): rounded to nearest even.
void narrow_row(const float* from, int64_t n, half* to);

}  // namespace leat
