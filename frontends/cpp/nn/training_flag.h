// Whether a layer trains.
#pragma once

#include <concepts>
#include <optional>

#include "graph/ops.h"

namespace leat::nn {

// true, false, or a scalar bool of the graph, which each step computes.
class TrainingFlag {
 public:
  template <std::same_as<bool> T>
  TrainingFlag(T value) : value_(value) {}  // NOLINT: converts
  template <std::same_as<Output> T>
  TrainingFlag(T scalar, Location at = here()) : scalar_(scalar) {  // NOLINT
    check(scalar && scalar.dtype() == boolean && Shape{}.is_compatible(scalar.shape()),
          "the training flag of a layer (", at, ") must be a scalar bool, got ",
          scalar ? concat(scalar.name(), " ", scalar.dtype(), scalar.shape()) : "none");
  }
  bool is_fixed() const { return value_.has_value(); }
  bool value() const { return *value_; }            // if it is fixed
  const Output& scalar() const { return scalar_; }  // if it is not

 private:
  std::optional<bool> value_;
  Output scalar_;
};

}  // namespace leat::nn
