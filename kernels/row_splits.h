// Row splits of ragged tensors.
#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>
#include <vector>

#include "core/tensor.h"

namespace leat {

// The start of each row and the end of the last, as int32 or int64. INVALID_ARGUMENT if they do not
// fit.
inline Tensor row_splits(const std::vector<int64_t>& splits, DType dtype) {
  const Shape shape{static_cast<int64_t>(splits.size())};
  if (dtype == DType::i64) return Tensor::of<int64_t>(shape, std::span<const int64_t>(splits));
  check(splits.empty() || splits.back() <= std::numeric_limits<int32_t>::max(), splits.back(),
        " ragged values are too many for row splits of int32");
  Tensor out(DType::i32, shape);
  std::copy(splits.begin(), splits.end(), out.data<int32_t>());
  return out;
}

}  // namespace leat
