// Index vectors, as GatherNd and ScatterNd take them: each names a slice of a tensor.
#pragma once

#include <cstdint>

#include "core/error.h"
#include "core/kernel.h"
#include "core/shape.h"

namespace leat {

// indices [places…, depth] into a tensor [depth axes…, slice…].
struct IndexVectors {
  int64_t count = 1;  // vectors
  int64_t depth = 0;  // numbers in each
  int64_t slice = 1;  // elements that each names
  int64_t extents[Shape::max_rank] = {};
  int64_t strides[Shape::max_rank] = {};  // in slices

  IndexVectors() = default;
  IndexVectors(const Shape& indices, const Shape& tensor) : depth(indices[indices.rank() - 1]) {
    check(depth <= tensor.rank(), "indices of ", depth, " numbers do not index into shape ",
          tensor);
    const int axes = static_cast<int>(depth);
    for (int i = 0; i + 1 < indices.rank(); ++i) count *= indices[i];
    for (int i = axes; i < tensor.rank(); ++i) slice *= tensor[i];
    int64_t stride = 1;
    for (int i = axes - 1; i >= 0; --i) {
      extents[i] = tensor[i];
      strides[i] = stride;
      stride *= tensor[i];
    }
    if (indices.elements() == 0 && slice == 0) count = 0;  // any number of vectors name nothing
  }

  // How many slices there are.
  int64_t slices() const {
    int64_t out = 1;
    for (int i = 0; i < static_cast<int>(depth); ++i) out *= extents[i];
    return out;
  }
  // The number of the slice, -1 if there is no such slice.
  template <class Index>
  constexpr int64_t slice_of(const Index* vector) const {
    int64_t at = 0;
    for (int64_t d = 0; d < depth; ++d) {
      const int64_t index = static_cast<int64_t>(vector[d]);
      if (index < 0 || index >= extents[d]) return -1;
      at += index * strides[d];
    }
    return at;
  }
};

}  // namespace leat
