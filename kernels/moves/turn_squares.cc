#include "kernels/moves/turn_squares.h"

#include "kernels/cpu.h"
#include "kernels/moves/square.h"

namespace leat {
namespace {

template <int side, bool adds, class T>
LEAT_INLINE inline void turn_square(const T* from, int64_t from_stride, T* to, int64_t to_stride) {
  using Anywhere = typename RowOf<T, side>::anywhere;
  typename RowOf<T, side>::type rows[side];
  for (int i = 0; i < side; ++i)
    rows[i] = *reinterpret_cast<const Anywhere*>(from + i * from_stride);
  turn(rows);
  for (int i = 0; i < side; ++i) {
    Anywhere& row = *reinterpret_cast<Anywhere*>(to + i * to_stride);
    row = adds ? row + rows[i] : rows[i];
  }
}

template <int side, bool adds, class T>
LEAT_INLINE inline void turn_all(const T* from, int64_t from_stride, T* to, int64_t to_stride,
                                 int64_t rows, int64_t columns) {
  const int64_t whole_rows = rows / side * side, whole_columns = columns / side * side;
  for (int64_t j = 0; j < whole_columns; j += side) {
    for (int64_t i = 0; i < whole_rows; i += side) {
      turn_square<side, adds>(from + i * from_stride + j, from_stride, to + j * to_stride + i,
                              to_stride);
    }
  }
  for (int64_t j = 0; j < columns; ++j) {
    for (int64_t i = j < whole_columns ? whole_rows : 0; i < rows; ++i) {
      T& element = to[j * to_stride + i];
      const T turned = from[i * from_stride + j];
      element = adds ? static_cast<T>(element + turned) : turned;
    }
  }
}

// The side of a square, for registers of so many bytes. Of elements of a byte or two, a row of 16
// fills a part of one.
template <class T>
constexpr int side(int register_bytes) {
  return std::min<int>(register_bytes / sizeof(T), 16);
}

template <bool adds, class T>
void turn_with_vectors(const T* from, int64_t from_stride, T* to, int64_t to_stride, int64_t rows,
                       int64_t columns) {
  switch (cpu_isa()) {
    case Isa::avx512:
      return vectorized_avx512([=]() LEAT_INLINE {
        turn_all<side<T>(64), adds>(from, from_stride, to, to_stride, rows, columns);
      });
    case Isa::avx2:
      return vectorized_avx2([=]() LEAT_INLINE {
        turn_all<side<T>(32), adds>(from, from_stride, to, to_stride, rows, columns);
      });
    case Isa::base:
      return turn_all<side<T>(16), adds>(from, from_stride, to, to_stride, rows, columns);
  }
}

}  // namespace

template <class T>
void turn_squares(const T* from, int64_t from_stride, T* to, int64_t to_stride, int64_t rows,
                  int64_t columns) {
  turn_with_vectors<false>(from, from_stride, to, to_stride, rows, columns);
}

void add_turned_squares(const float* from, int64_t from_stride, float* to, int64_t to_stride,
                        int64_t rows, int64_t columns) {
  turn_with_vectors<true>(from, from_stride, to, to_stride, rows, columns);
}

template void turn_squares(const uint8_t*, int64_t, uint8_t*, int64_t, int64_t, int64_t);
template void turn_squares(const uint16_t*, int64_t, uint16_t*, int64_t, int64_t, int64_t);
template void turn_squares(const uint32_t*, int64_t, uint32_t*, int64_t, int64_t, int64_t);
template void turn_squares(const uint64_t*, int64_t, uint64_t*, int64_t, int64_t, int64_t);
template void turn_squares(const float*, int64_t, float*, int64_t, int64_t, int64_t);

}  // namespace leat
