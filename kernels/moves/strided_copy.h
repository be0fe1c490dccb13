// Copies between two strided views of one set of elements: Slice, Transpose, Tile, ConcatV2 and
// similar ops reduce to it.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/device.h"
#include "core/shape.h"

namespace leat {

class StridedCopy {
 public:
  // One axis of the index space; strides in elements. A `from` stride of 0 repeats elements.
  struct Axis {
    int64_t extent, from, to;
  };

  StridedCopy() = default;
  // to[Σ i·to] = from[Σ i·from] for all i; axes from the outermost to the innermost. Views may
  // start anywhere: the caller adds offsets to the pointers.
  explicit StridedCopy(std::vector<Axis> axes);

  int64_t elements() const { return elements_; }
  // Axes of more than one index, in the order of the elements of `to`: its strides fall.
  // Neighbours are merged where both views allow it.
  struct AxisList {
    static constexpr int max_count = 2 * Shape::max_rank;
    int count = 0;
    Axis axes[max_count];
  };
  AxisList ordered_axes() const;

  // T: uint8_t, uint16_t, uint32_t, uint64_t, complex128 (any element of that size) or
  // std::string.
  template <class T>
  void run(Stream& stream, const T* from, T* to) const;

 private:
  template <class T>
  void copy_row(const T* from, T* to, int64_t n) const;
  template <class T>
  void copy_rows(const T* from, T* to, int64_t begin, int64_t end) const;
  template <class T>
  void copy_parts(const T* from, T* to, int64_t length, int64_t begin, int64_t end) const;
  template <class T>
  void copy_tiles(const T* from, T* to, int64_t begin, int64_t end) const;

  std::vector<Axis> outer_;  // all except `plane_` and `row_`
  Axis plane_{1, 0, 0};      // an axis along which `from` is contiguous, if the rows are not
  Axis row_{1, 0, 0};        // the innermost axis
  int64_t outer_count_ = 1, elements_ = 1;
};

// Row-major strides of a shape, in elements; 0 if the shape has no elements.
std::vector<int64_t> strides_of(const Shape& shape);

}  // namespace leat
