// One copy loop for all ops that only move elements; it picks plain rows or transposed tiles.
#include "kernels/moves/strided_copy.h"

#include <algorithm>
#include <array>

#include "core/visit_dtype.h"
#include "kernels/moves/turn_squares.h"

namespace leat {
namespace {

constexpr int64_t tile = 32;  // side of a transposed tile: both sides stay in L1
template <class T>
constexpr bool is_turned_in_registers = std::is_unsigned_v<T>;
constexpr int64_t bytes_per_chunk = 1 << 18;  // some tens of microseconds of copying

// Positions of both views at one index of the outer axes, and the step to the next.
class Odometer {
 public:
  Odometer(const std::vector<StridedCopy::Axis>& axes, int64_t index) : axes_(axes) {
    for (size_t a = axes.size(); a-- > 0;) {
      at_[a] = index % axes[a].extent;
      index /= axes[a].extent;
      from += at_[a] * axes[a].from;
      to += at_[a] * axes[a].to;
    }
  }
  void advance() {
    for (size_t a = axes_.size(); a-- > 0;) {
      from += axes_[a].from;
      to += axes_[a].to;
      if (++at_[a] < axes_[a].extent) return;
      at_[a] = 0;
      from -= axes_[a].from * axes_[a].extent;
      to -= axes_[a].to * axes_[a].extent;
    }
  }
  int64_t from = 0, to = 0;

 private:
  const std::vector<StridedCopy::Axis>& axes_;
  std::array<int64_t, 2 * Shape::max_rank> at_;
};

// Whether both views run through two neighbouring axes without a gap.
bool is_gapless(const StridedCopy::Axis& outer, const StridedCopy::Axis& inner) {
  return outer.from == inner.from * inner.extent && outer.to == inner.to * inner.extent;
}
StridedCopy::Axis merged(const StridedCopy::Axis& outer, const StridedCopy::Axis& inner) {
  return {outer.extent * inner.extent, inner.from, inner.to};
}

}  // namespace

StridedCopy::StridedCopy(std::vector<Axis> axes) {
  for (const Axis& axis : axes) {
    if (axis.extent == 0) elements_ = 0;
  }
  if (elements_ == 0) return;
  for (const Axis& axis : axes) {
    elements_ *= axis.extent;
    if (axis.extent == 1) continue;
    if (!outer_.empty() && is_gapless(outer_.back(), axis)) {
      outer_.back() = merged(outer_.back(), axis);
    } else {
      outer_.push_back(axis);
    }
  }
  if (!outer_.empty()) {
    row_ = outer_.back();
    outer_.pop_back();
    if (row_.from != 1 && row_.from != 0) {
      const auto contiguous =
          std::find_if(outer_.begin(), outer_.end(), [](const Axis& a) { return a.from == 1; });
      if (contiguous != outer_.end()) {
        plane_ = *contiguous;
        outer_.erase(contiguous);
      }
    }
  }
  for (const Axis& axis : outer_) outer_count_ *= axis.extent;
}

StridedCopy::AxisList StridedCopy::ordered_axes() const {
  AxisList sorted, out;
  const auto insert = [&](const Axis& axis) {
    if (axis.extent == 1) return;
    int at = sorted.count++;
    for (; at > 0 && sorted.axes[at - 1].to < axis.to; --at) sorted.axes[at] = sorted.axes[at - 1];
    sorted.axes[at] = axis;
  };
  for (const Axis& axis : outer_) insert(axis);
  insert(plane_);
  insert(row_);
  for (int i = 0; i < sorted.count; ++i) {
    const Axis& axis = sorted.axes[i];
    if (out.count > 0 && is_gapless(out.axes[out.count - 1], axis)) {
      out.axes[out.count - 1] = merged(out.axes[out.count - 1], axis);
    } else {
      out.axes[out.count++] = axis;
    }
  }
  return out;
}

template <class T>
void StridedCopy::copy_row(const T* from, T* to, int64_t n) const {
  if (row_.from == 1 && row_.to == 1) {
    std::copy_n(from, n, to);
  } else if (row_.from == 0 && row_.to == 1) {
    std::fill_n(to, n, *from);
  } else if (row_.from == -1 && row_.to == 1) {
    std::reverse_copy(from - (n - 1), from + 1, to);
  } else {
    for (int64_t j = 0; j < n; ++j) to[j * row_.to] = from[j * row_.from];
  }
}

template <class T>
void StridedCopy::copy_rows(const T* from, T* to, int64_t begin, int64_t end) const {
  Odometer at(outer_, begin);
  for (int64_t i = begin; i < end; ++i, at.advance())
    copy_row(from + at.from, to + at.to, row_.extent);
}

// [begin, end) counts parts of `length` steps, the last of a row shorter, for each outer index.
template <class T>
void StridedCopy::copy_parts(const T* from, T* to, int64_t length, int64_t begin,
                             int64_t end) const {
  const int64_t parts = (row_.extent + length - 1) / length;
  Odometer at(outer_, begin / parts);
  for (int64_t s = begin; s < end; ++s) {
    const int64_t first = s % parts * length;
    copy_row(from + at.from + first * row_.from, to + at.to + first * row_.to,
             std::min(length, row_.extent - first));
    if ((s + 1) % parts == 0) at.advance();
  }
}

// [begin, end) counts strips of `tile` steps along plane_, for each outer index.
template <class T>
void StridedCopy::copy_tiles(const T* from, T* to, int64_t begin, int64_t end) const {
  const int64_t strips = (plane_.extent + tile - 1) / tile;
  Odometer at(outer_, begin / strips);
  for (int64_t s = begin; s < end; ++s) {
    const int64_t p0 = s % strips * tile, p1 = std::min(p0 + tile, plane_.extent);
    for (int64_t r0 = 0; r0 < row_.extent; r0 += tile) {
      const int64_t r1 = std::min(r0 + tile, row_.extent);
      if constexpr (is_turned_in_registers<T>) {
        if (row_.to == 1) {
          turn_squares(from + at.from + p0 + r0 * row_.from, row_.from,
                       to + at.to + p0 * plane_.to + r0, plane_.to, r1 - r0, p1 - p0);
          continue;
        }
      }
      for (int64_t p = p0; p < p1; ++p) {
        const T* source = from + at.from + p;
        T* target = to + at.to + p * plane_.to;
        for (int64_t r = r0; r < r1; ++r) target[r * row_.to] = source[r * row_.from];
      }
    }
    if ((s + 1) % strips == 0) at.advance();
  }
}

template <class T>
void StridedCopy::run(Stream& stream, const T* from, T* to) const {
  if (elements_ == 0) return;
  const bool tiled = plane_.extent > 1;
  constexpr int64_t part = bytes_per_chunk / static_cast<int64_t>(sizeof(T));
  if (!tiled && row_.extent > 2 * part) {
    return stream.parallel_for(
        outer_count_ * ((row_.extent + part - 1) / part), 1,
        [&](int64_t begin, int64_t end) { copy_parts(from, to, part, begin, end); });
  }
  const int64_t units = tiled ? outer_count_ * ((plane_.extent + tile - 1) / tile) : outer_count_;
  const int64_t bytes_per_unit =
      std::max<int64_t>(1, elements_ / units * static_cast<int64_t>(sizeof(T)));
  stream.parallel_for(units, std::max<int64_t>(1, bytes_per_chunk / bytes_per_unit),
                      [&](int64_t begin, int64_t end) {
                        if (tiled) {
                          copy_tiles(from, to, begin, end);
                        } else {
                          copy_rows(from, to, begin, end);
                        }
                      });
}

template void StridedCopy::run(Stream&, const uint8_t*, uint8_t*) const;
template void StridedCopy::run(Stream&, const uint16_t*, uint16_t*) const;
template void StridedCopy::run(Stream&, const uint32_t*, uint32_t*) const;
template void StridedCopy::run(Stream&, const uint64_t*, uint64_t*) const;
template void StridedCopy::run(Stream&, const complex128*, complex128*) const;
template void StridedCopy::run(Stream&, const std::string*, std::string*) const;

std::vector<int64_t> strides_of(const Shape& shape) {
  std::vector<int64_t> strides(shape.rank());
  if (shape.elements() == 0) return strides;  // the products of its extents may overflow
  int64_t stride = 1;
  for (int axis = shape.rank() - 1; axis >= 0; --axis) {
    strides[axis] = stride;
    stride *= shape[axis];
  }
  return strides;
}

}  // namespace leat
