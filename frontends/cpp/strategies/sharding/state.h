// What the workers of a group have of one tensor.
#pragma once

#include <cstdint>
#include <string>

#include "core/error.h"
#include "core/shape.h"

namespace leat::sharding {

// Replicated: each has all of it. Split: each has one of N equal parts along an axis, in the order
// of the workers. Partial: each has a summand, the tensor is their sum.
class State {
 public:
  constexpr State() = default;  // replicated
  static constexpr State replicated() { return State(0); }
  static constexpr State partial() { return State(1); }
  static constexpr State split(int axis) { return State(axis + 2); }

  bool is_replicated() const { return code_ == 0; }
  bool is_partial() const { return code_ == 1; }
  bool is_split() const { return code_ > 1; }
  int axis() const { return code_ - 2; }  // of a split
  // 0 and up, different for each state of a tensor.
  int code() const { return code_; }
  static constexpr State of_code(int code) { return State(code); }
  static constexpr int codes = 2 + Shape::max_rank;

  bool operator==(const State&) const = default;
  std::string text() const {
    return is_replicated() ? "replicated" : is_partial() ? "partial" : concat("split ", axis());
  }

 private:
  explicit constexpr State(int code) : code_(static_cast<int8_t>(code)) {}
  int8_t code_ = 0;
};

// Whether N workers can have equal parts: the extent is known, and a multiple of N.
inline bool can_split(const Shape& shape, int axis, int n) {
  return shape.has_rank() && axis >= 0 && axis < shape.rank() && shape[axis] > 0 &&
         shape[axis] % n == 0;
}

// Of a worker's part.
inline Shape local_shape(Shape shape, State state, int n) {
  if (state.is_split()) shape.set(state.axis(), shape[state.axis()] / n);
  return shape;
}

}  // namespace leat::sharding
