// Transposes a part of a matrix, square by square in the registers: a cache line is read once and
// written once, also where rows that begin a power of two apart meet in few lines of the cache.
#pragma once

#include <cstdint>

namespace leat {

// to[j * to_stride + i] = from[i * from_stride + j] for `rows` rows i and `columns` columns j. T is
// float, or an unsigned integer of the element's size.
template <class T>
void turn_squares(const T* from, int64_t from_stride, T* to, int64_t to_stride, int64_t rows,
                  int64_t columns);
// The same, added to what is there.
void add_turned_squares(const float* from, int64_t from_stride, float* to, int64_t to_stride,
                        int64_t rows, int64_t columns);

}  // namespace leat
