// Parts of a tensor: x[0], x[{all, slice(0, 2)}], x[{slice(1, 3), newaxis}].
#pragma once

#include <concepts>
#include <optional>
#include <variant>

#include "graph/ops/reduce.h"

namespace leat {

// Positions begin, begin + step, … before end. Negative positions count from the end; without
// begin or end the slice goes to that end of the axis.
struct Slice {
  std::optional<int64_t> begin, end;
  int64_t step = 1;
};
inline Slice slice(std::optional<int64_t> begin, std::optional<int64_t> end, int64_t step = 1) {
  return {begin, end, step};
}

struct NewAxis {};
struct Ellipsis {};
inline constexpr NewAxis newaxis;    // an axis of length 1
inline constexpr Ellipsis ellipsis;  // as many whole axes as are left

// What is taken of one axis.
class Index {
 public:
  template <std::integral T>
  Index(T position, Location at = here())  // NOLINT: converts; the axis is gone afterwards
      : what_(static_cast<int64_t>(position)), at_(at) {}
  Index(Output position, Location at = here()) : what_(position), at_(at) {}  // NOLINT: scalar
  Index(Slice slice, Location at = here()) : what_(slice), at_(at) {}         // NOLINT
  Index(const AllOrAxis&, Location at = here()) : what_(Slice{}), at_(at) {}  // NOLINT
  Index(NewAxis, Location at = here()) : what_(NewAxis{}), at_(at) {}         // NOLINT
  Index(Ellipsis, Location at = here()) : what_(Ellipsis{}), at_(at) {}       // NOLINT

  using What = std::variant<int64_t, Output, Slice, NewAxis, Ellipsis>;
  const What& what() const { return what_; }
  Location at() const { return at_; }

 private:
  What what_;
  Location at_;
};

}  // namespace leat
