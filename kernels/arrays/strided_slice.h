// Resolves StridedSlice's begin, end, strides and its five masks for one input shape.
#pragma once

#include <vector>

#include "core/attr.h"
#include "core/shape.h"
#include "core/tensor.h"

namespace leat {

struct StridedSlice {
  // One axis of the input. `extent` is `any` where the input's is and the slice depends on it.
  struct Axis {
    int64_t begin = 0, stride = 1, extent = any;
  };
  std::vector<Axis> axes;
  Shape result;  // without the shrunk axes, with the new ones

  // begin, end and strides may be null if not known yet: extents that depend on them are then
  // `any`. INVALID_ARGUMENT for a stride of 0, too many indices, an index out of bounds.
  static StridedSlice resolve(const NodeView& node, const Shape& input, int64_t indices,
                              const Tensor* begin, const Tensor* end, const Tensor* strides);
};

}  // namespace leat
