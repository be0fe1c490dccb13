// The tensors that ConcatV2, Split and similar ops join or take apart, as blocks of rows.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "core/kernel.h"
#include "kernels/moves/strided_copy.h"

namespace leat {

// Every tensor of a list is a block of each row of the whole: [outer, block], beginning at column
// `at`.
struct Block {
  StridedCopy copy;
  int64_t at;
};

inline int64_t outer_of(const Shape& shape, int axis) {
  int64_t outer = 1;
  for (int i = 0; i < axis; ++i) outer *= shape[i];
  return outer;
}

inline std::vector<Block> blocks_of(std::span<const TensorSpec> parts, int64_t outer, bool join) {
  int64_t row = 0;
  std::vector<int64_t> widths;
  for (const TensorSpec& part : parts) {
    widths.push_back(outer == 0 ? 0 : part.shape.elements() / outer);
    row += widths.back();
  }
  std::vector<Block> blocks;
  int64_t at = 0;
  for (int64_t width : widths) {
    blocks.push_back(
        {StridedCopy(join ? std::vector<StridedCopy::Axis>{{outer, width, row}, {width, 1, 1}}
                          : std::vector<StridedCopy::Axis>{{outer, row, width}, {width, 1, 1}}),
         at});
    at += width;
  }
  return blocks;
}

// The axis in a value input: a scalar, or a tensor of up to `max_rank` axes with one element.
inline int64_t axis_value(const Tensor& axis, int max_rank = 1) {
  check(axis.elements() == 1 && axis.shape().rank() <= max_rank,
        "the axis must be one number, got shape ", axis.shape());
  return to_int64s(axis)[0];
}

}  // namespace leat
