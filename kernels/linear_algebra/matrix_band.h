// Bands of diagonals of matrices, for the kernels of MatrixDiag and its like on both devices
// (constexpr: nvcc compiles it for the GPU, too).
#pragma once

#include <algorithm>
#include <string_view>

#include "core/attr.h"
#include "core/shape.h"
#include "core/tensor.h"

namespace leat {

// Diagonals `low` to `high` of [rows, cols] matrices; 0 is the main one, 1 the one above it. Packed
// they are [count(), longest()], the highest first.
struct Band {
  int64_t low = 0, high = 0, rows = 0, cols = 0;
  bool left_above = true, left_below = true;  // where shorter diagonals lie in their row

  constexpr int64_t count() const { return high - low + 1; }
  constexpr int64_t length(int64_t d) const {
    return std::min(rows + std::min(d, int64_t{0}), cols - std::max(d, int64_t{0}));
  }
  constexpr int64_t longest() const {
    return std::min(rows + std::min(high, int64_t{0}), cols - std::max(low, int64_t{0}));
  }
  constexpr int64_t offset(int64_t d) const {
    const bool left = (d >= 0 && left_above) || (d <= 0 && left_below);
    return left ? 0 : longest() - length(d);
  }

  // f(offset in the matrix, offset in the packed diagonals) for each element.
  template <class F>
  void for_each(F f) const {
    if (longest() <= 0) return;  // for any number of diagonals
    for (int64_t d = high; d >= low; --d) {
      const int64_t first = d >= 0 ? d : -d * cols, packed = (high - d) * longest() + offset(d);
      for (int64_t i = 0, n = length(d); i < n; ++i) f(first + i * (cols + 1), packed + i);
    }
  }
};

// Whether the op takes a band; others take the main diagonal.
inline bool has_band(std::string_view op) { return op.ends_with("V2") || op.ends_with("V3"); }

// The band that input `k` (null for the main diagonal) names in matrices [batch…, rows, cols].
Band band_in(const NodeView& node, const Tensor* k, const Shape& matrix);
// The band of MatrixDiag's output.
Band diag_band(const NodeView& node, const Shape& diagonal, const Tensor* k, const Tensor* rows,
               const Tensor* cols);

}  // namespace leat
