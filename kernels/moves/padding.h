// Elements of different extents in one batch: each fills a corner of its padded row.
#pragma once

#include "kernels/moves/copy_elements.h"
#include "kernels/moves/strided_copy.h"

namespace leat {

// Copies into `to`, which is at least as large along each axis; the element begins at `at`.
inline void copy_into_corner(const Tensor& from, Tensor& to, int64_t at, const Shape& room) {
  const Shape& shape = from.shape();
  if (shape == room) return copy_elements(from, 0, to, at, room.elements());
  if (shape.elements() == 0) return;
  const int last = shape.rank() - 1;
  const std::vector<int64_t> strides = strides_of(room);
  const int64_t rows = shape.elements() / shape[last];
  for (int64_t row = 0; row < rows; ++row) {
    int64_t place = at;
    for (int64_t axis = last - 1, rest = row; axis >= 0; --axis) {
      place += rest % shape[static_cast<int>(axis)] * strides[axis];
      rest /= shape[static_cast<int>(axis)];
    }
    copy_elements(from, row * shape[last], to, place, shape[last]);
  }
}

}  // namespace leat
