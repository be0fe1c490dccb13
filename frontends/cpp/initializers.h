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

// Objects that are initialisers themselves and, called with options, make one:
//   variable(g, "b", {8}, initializers::ones);
//   nn::dense(x, 8, {.kernel_initializer = initializers::he_normal({.seed = 1})});
// Seeds follow TensorFlow: 0 = different at each run. Another seed gives each part numbers of its
// own; in TensorFlow parts of one shape are equal then.
namespace initializers {
Initializer constant(double value);
// Shape and dtype must be the variable's; a part gets its slice.
Initializer constant(Tensor value);
struct Constant {
  double value;
  Initializer operator()() const { return constant(value); }
  operator Initializer() const { return (*this)(); }  // NOLINT: converts
};
inline constexpr Constant zeros{0}, ones{1};
// What another variable begins with, whose shape and dtype must be the same.
Initializer value_of(Output variable);

struct NormalOptions {
  double mean = 0, stddev = 1;
  int64_t seed = 0;
};
struct Normal {
  bool is_truncated;
  Initializer operator()(const NormalOptions& options = {}) const;
  // random_normal(0.1): no options in braces end up here.
  template <class T>
  requires std::is_arithmetic_v<T> Initializer operator()(T stddev) const {
    return (*this)(NormalOptions{.stddev = static_cast<double>(stddev)});
  }
  // Two numbers are mean and stddev, as in Keras: random_normal(0, 0.1).
  template <class T>
  requires std::is_arithmetic_v<T> Initializer operator()(T mean, double stddev,
                                                          int64_t seed = 0) const {
    return (*this)(
        NormalOptions{.mean = static_cast<double>(mean), .stddev = stddev, .seed = seed});
  }
  operator Initializer() const { return (*this)(); }  // NOLINT: converts
};
// Normal with mean 0 and stddev 1, or as the options say; of the truncated one, what is within two
// standard deviations is kept, and `stddev` is that of the normal distribution before: what is kept
// has 0.8796 of it.
inline constexpr Normal random_normal{false}, truncated_normal{true};

struct UniformOptions {
  double low = -0.05, high = 0.05;
  int64_t seed = 0;
};
struct Uniform {
  Initializer operator()(const UniformOptions& options = {}) const;
  // random_uniform(-1, 1)
  template <class T>
  requires std::is_arithmetic_v<T> Initializer operator()(T low, double high,
                                                          int64_t seed = 0) const {
    return (*this)(UniformOptions{.low = static_cast<double>(low), .high = high, .seed = seed});
  }
  operator Initializer() const { return (*this)(); }  // NOLINT: converts
};
inline constexpr Uniform random_uniform;

// ---- By the size of a layer ----
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

struct SeedOptions {
  int64_t seed = 0;
};
struct VarianceScaling {
  double scale;
  Fan fan;
  Distribution distribution;
  Initializer operator()(SeedOptions options = {}) const;
  operator Initializer() const { return (*this)(); }  // NOLINT: converts
};
// U(-l, l) with l = sqrt(6 / (fan_in + fan_out)), and truncated normal with variance
// 2 / (fan_in + fan_out); Glorot and Bengio, "Understanding the difficulty of training deep
// feedforward neural networks", AISTATS 2010. For tanh and sigmoid.
inline constexpr VarianceScaling glorot_uniform{1, Fan::average, Distribution::uniform};
inline constexpr VarianceScaling glorot_normal{1, Fan::average, Distribution::truncated_normal};
// Variance 2 / fan_in: U(-l, l) with l = sqrt(6 / fan_in), and truncated normal; He et al.,
// "Delving Deep into Rectifiers", ICCV 2015. For relu.
inline constexpr VarianceScaling he_uniform{2, Fan::in, Distribution::uniform};
inline constexpr VarianceScaling he_normal{2, Fan::in, Distribution::truncated_normal};
// Variance 1 / fan_in: U(-l, l) with l = sqrt(3 / fan_in), and truncated normal; LeCun et al.,
// "Efficient BackProp", 1998; for selu, Klambauer et al., "Self-Normalizing Neural Networks", NIPS
// 2017.
inline constexpr VarianceScaling lecun_uniform{1, Fan::in, Distribution::uniform};
inline constexpr VarianceScaling lecun_normal{1, Fan::in, Distribution::truncated_normal};

// ---- Matrices ----
struct Orthogonal {
  Initializer operator()(double gain = 1, int64_t seed = 0) const;
  operator Initializer() const { return (*this)(); }  // NOLINT: converts
};
// gain * Q, where the rows or the columns of Q, whichever are fewer, are orthonormal; Saxe et al.,
// "Exact solutions to the nonlinear dynamics of learning in deep linear neural networks", ICLR
// 2014. Q is drawn uniformly (Mezzadri, "How to generate random matrices from the classical compact
// groups", 2007). More than two axes: a matrix of the last axis and all others. float32, float64,
// float16 or bfloat16. Parts of a variable need a seed.
inline constexpr Orthogonal orthogonal;
struct Identity {
  Initializer operator()(double gain = 1) const;
  operator Initializer() const { return (*this)(); }  // NOLINT: converts
};
// gain on the diagonal, else 0: a matrix.
inline constexpr Identity identity;
}  // namespace initializers

}  // namespace leat
