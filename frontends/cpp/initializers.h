// How variables start.
#pragma once

#include <concepts>
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
// Normal with mean 0; of the truncated one, what is within two standard deviations is kept, and
// `stddev` is that of the normal distribution before: what is kept has 0.8796 of it.
struct NormalOptions {
  double mean = 0, stddev = 1;
  int64_t seed = 0;
};
Initializer random_normal(const NormalOptions& options = {});
Initializer truncated_normal(const NormalOptions& options = {});
struct UniformOptions {
  double low = -0.05, high = 0.05;
  int64_t seed = 0;
};
Initializer random_uniform(const UniformOptions& options = {});
// The same: random_normal(0.1), random_uniform(-1, 1). No options in braces end up here.
template <class T>
requires std::is_arithmetic_v<T> Initializer random_normal(T stddev, int64_t seed = 0) {
  return random_normal(NormalOptions{.stddev = static_cast<double>(stddev), .seed = seed});
}
template <class T>
requires std::is_arithmetic_v<T> Initializer truncated_normal(T stddev, int64_t seed = 0) {
  return truncated_normal(NormalOptions{.stddev = static_cast<double>(stddev), .seed = seed});
}
template <class T>
requires std::is_arithmetic_v<T> Initializer random_uniform(T low, double high, int64_t seed = 0) {
  return random_uniform(
      UniformOptions{.low = static_cast<double>(low), .high = high, .seed = seed});
}

// ---- By the size of a layer ----
struct SeedOptions {
  int64_t seed = 0;
};
// Fans are Keras': of a kernel [in, out] fan_in is `in` and fan_out `out`; of a convolution's
// [spatial…, in, out] both times the number of positions; of a vector [n] both are n, of a scalar
// 1. They are those of the whole variable, for a part as well.
enum class Fan { in, out, average };
enum class Distribution { truncated_normal, normal, uniform };
struct VarianceScalingOptions {
  double scale = 1;
  Fan fan = Fan::in;
  Distribution distribution = Distribution::truncated_normal;
  int64_t seed = 0;
};
// Numbers with mean 0 and variance scale / fan, in all three distributions; those below are
// special cases. As tf.keras.initializers.VarianceScaling.
Initializer variance_scaling(const VarianceScalingOptions& options, Location at = here());
// U(-l, l) with l = sqrt(6 / (fan_in + fan_out)), and truncated normal with variance
// 2 / (fan_in + fan_out); Glorot and Bengio, "Understanding the difficulty of training deep
// feedforward neural networks", AISTATS 2010. For tanh and sigmoid.
Initializer glorot_uniform(SeedOptions options = {});
Initializer glorot_normal(SeedOptions options = {});
// Variance 2 / fan_in; He et al., "Delving Deep into Rectifiers", ICCV 2015. For relu.
Initializer he_uniform(SeedOptions options = {});  // U(-l, l) with l = sqrt(6 / fan_in)
Initializer he_normal(SeedOptions options = {});   // truncated
// Variance 1 / fan_in; LeCun et al., "Efficient BackProp", 1998; for selu, Klambauer et al.,
// "Self-Normalizing Neural Networks", NIPS 2017.
Initializer lecun_uniform(SeedOptions options = {});  // U(-l, l) with l = sqrt(3 / fan_in)
Initializer lecun_normal(SeedOptions options = {});   // truncated

// ---- Matrices ----
// gain * Q, where the rows or the columns of Q, whichever are fewer, are orthonormal; Saxe et al.,
// "Exact solutions to the nonlinear dynamics of learning in deep linear neural networks", ICLR
// 2014. Q is drawn uniformly (Mezzadri, "How to generate random matrices from the classical compact
// groups", 2007). More than two axes: a matrix of the last axis and all others. float32, float64,
// float16 or bfloat16. Parts of a variable need a seed.
Initializer orthogonal(double gain = 1, int64_t seed = 0);
// gain on the diagonal, else 0: a matrix.
Initializer identity(double gain = 1);
}  // namespace initializers

}  // namespace leat
