// How variables start.
#pragma once

#include <functional>
#include <string>

#include "graph/formats/tensor_slice.h"
#include "graph/ops.h"

namespace leat {

// What an initialiser fills: a whole variable, or a part of a partitioned one
// (partitioned_variables.h).
struct VariablePart {
  std::string of;     // the partitioned variable's name in checkpoints; "" if this is no part
  Shape whole;        // of the variable
  TensorSlice slice;  // all lengths given

  VariablePart(const Shape& whole)  // NOLINT: converts; no part, but all of it
      : whole(whole), slice(TensorSlice::whole(whole.rank()).resolved(whole)) {}
  VariablePart(std::string of, const Shape& whole, const TensorSlice& slice)
      : of(std::move(of)), whole(whole), slice(slice.resolved(whole)) {}

  Shape shape() const { return slice.shape(); }
  // "10 20 0,5:0,20", as in SaveV2's shape_and_slices.
  std::string text() const { return ShapeAndSlice{false, whole, slice}.to_string(); }
  operator Shape() const { return shape(); }  // NOLINT: for initialisers that do not ask for more
};

// Makes the first value of a variable, or part of one, of that dtype and shape. A function of
// (Graph&, DType, const Shape&) is one, too: it takes a part for a variable of its own.
using Initializer = std::function<Output(Graph&, DType, const VariablePart&)>;

// Seeds follow TensorFlow: 0 = different at each run. Another seed gives each part numbers of its
// own; in TensorFlow parts of one shape are equal then.
namespace initializers {
Initializer zeros();
Initializer ones();
Initializer constant(double value);
// Shape and dtype must be the variable's; a part gets its slice.
Initializer constant(Tensor value);
// What another variable begins with, whose shape and dtype must be the same.
Initializer value_of(Output variable);
Initializer truncated_normal(double stddev = 1.0, int64_t seed = 0);
Initializer random_uniform(double low, double high, int64_t seed = 0);
// U(-l, l) with l = sqrt(6 / (fan_in + fan_out)); Glorot and Bengio, AISTATS 2010. Rank 2 or more.
// Fans are those of the whole variable here and below, for a part as well.
Initializer glorot_uniform(int64_t seed = 0);
// Truncated normal with stddev sqrt(2 / fan_in); He et al., ICCV 2015.
Initializer he_normal(int64_t seed = 0);
}  // namespace initializers

}  // namespace leat
