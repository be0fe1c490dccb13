// Parts of a tensor: x[0], x[{all, slice(0, 2)}], x[{slice(1, 3), newaxis}]. Alone in the brackets,
// an Output may be a bool mask, x[mask] (boolean_mask), or a vector of indices, x[ids] (take).
#pragma once

#include <concepts>
#include <optional>
#include <variant>

#include "graph/ops/reduce.h"

namespace leat {

inline constexpr std::nullopt_t none = std::nullopt;

// Where a slice begins or ends: a number, a scalar of the graph, or none: at that end of the axis.
class Bound {
 public:
  Bound() = default;        // none
  Bound(std::nullopt_t) {}  // NOLINT: converts
  template <AxisNumber T>
  Bound(T position) : position_(static_cast<int64_t>(position)) {}  // NOLINT
  Bound(Output position) : position_(position) {}                   // NOLINT
  template <AxisNumber T>
  Bound(std::optional<T> position) {  // NOLINT
    if (position) position_ = int64_t{*position};
  }

  using Position = std::variant<std::monostate, int64_t, Output>;
  const Position& position() const { return position_; }

 private:
  Position position_;
};

// Positions begin, begin + step, … before end. Negative positions count from the end; `none` is
// that end of the axis.
struct Slice {
  Bound begin, end;
  int64_t step = 1;
};
inline Slice slice(Bound begin, Bound end, int64_t step = 1) { return {begin, end, step}; }
inline Slice slice(Bound end) { return {none, end, 1}; }  // the first ones, as in Python

struct NewAxis {};
struct Ellipsis {};
inline constexpr NewAxis newaxis;    // an axis of length 1
inline constexpr Ellipsis ellipsis;  // as many whole axes as are left

// What is taken of one axis.
class Index {
 public:
  template <std::integral T>
  Index(T position, Location at = here())  // NOLINT: converts; removes the axis
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
