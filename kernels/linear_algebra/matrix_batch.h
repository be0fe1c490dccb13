// Batches of matrices, [..., m, n]; two of them may be broadcast against each other.
#pragma once

#include <algorithm>

#include "core/tensor.h"

namespace leat {

inline Shape batch_of(const Shape& shape) { return Shape(shape.dims().first(shape.rank() - 2)); }

// The index of an operand's matrix for each matrix of the output: the batch axes are broadcast.
inline Tensor matrices_of(const Shape& operand, const Shape& out) {
  Tensor numbers(i64, {out.elements()});  // throws if memory is short
  int64_t* found = numbers.data<int64_t>();
  std::fill_n(found, out.elements(), int64_t{0});
  const int added = out.rank() - operand.rank();
  for (int64_t b = 0; b < out.elements(); ++b) {
    int64_t rest = b, stride = 1;
    for (int axis = out.rank() - 1; axis >= added; --axis) {
      if (operand[axis - added] != 1) found[b] += rest % out[axis] * stride;
      rest /= out[axis];
      stride *= operand[axis - added];
    }
  }
  return numbers;
}

}  // namespace leat
