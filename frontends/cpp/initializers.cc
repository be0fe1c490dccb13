#include "frontends/cpp/initializers.h"

#include <cmath>

#include "frontends/cpp/variables.h"

namespace leat {
namespace {

// A constant whose value repeats over the whole shape, without storing it: Fill of a scalar.
Output filled(Graph& graph, DType dtype, const Shape& shape, double value, Location at) {
  Tensor scalar(dtype, {});
  const bool is_number = visit_dtype(dtype, [&]<class T>(TypeTag<T>) {
    if constexpr (!std::is_same_v<T, std::string>) *scalar.data<T>() = static_cast<T>(value);
  });
  check(is_number && dtype != DType::string, "a variable of dtype ", dtype,
        " cannot be filled with a number");
  return op("Fill", {Dims(shape).in(graph, at), constant(graph, scalar, "value", at)}, {}, at);
}

Output drawn(Graph& graph, std::string_view op_name, DType dtype, const VariablePart& part,
             int64_t seed) {
  // (0, 0) asks for a seed that differs at each run; any other pair is reproducible.
  int64_t seed2 = 0;
  if (seed != 0) {
    for (const TensorSlice::Extent& extent : part.slice.extents) seed2 += extent.start;
  }
  AttrMap attrs{{"dtype", dtype}, {"seed", seed}, {"seed2", seed2}};
  return op(op_name, {Dims(part.shape()).in(graph)}, std::move(attrs));
}

Output scaled(Output x, double factor) { return factor == 1.0 ? x : x * factor; }

// fan_in and fan_out of a kernel: [in, out], or [spatial…, in, out].
std::pair<double, double> fans(const Shape& shape) {
  check(shape.rank() >= 2,
        "an initialiser that looks at fan-in and fan-out needs rank 2 or more, got ", shape);
  double receptive = 1;
  for (int axis = 0; axis < shape.rank() - 2; ++axis) receptive *= static_cast<double>(shape[axis]);
  return {receptive * static_cast<double>(shape[shape.rank() - 2]),
          receptive * static_cast<double>(shape[shape.rank() - 1])};
}

Tensor slice_of(const Tensor& whole, const TensorSlice& slice) {
  if (slice.covers(whole.shape())) return whole;
  Tensor out(whole.dtype(), slice.shape());
  const int rank = whole.shape().rank();
  copy_common(whole, TensorSlice::whole(rank).resolved(whole.shape()), out, slice);
  return out;
}

}  // namespace

namespace initializers {

Initializer zeros() { return constant(0.0); }
Initializer ones() { return constant(1.0); }

Initializer constant(double value) {
  return [value](Graph& graph, DType dtype, const Shape& shape) {
    return filled(graph, dtype, shape, value, here());
  };
}

Initializer constant(Tensor value) {
  return [value](Graph& graph, DType dtype, const VariablePart& part) {
    check(value.dtype() == dtype && value.shape() == part.whole, "the initial value is ",
          value.dtype(), value.shape(), " but the variable is ", dtype, part.whole);
    return leat::constant(graph, slice_of(value, part.slice), "value");
  };
}

Initializer value_of(Output variable) {
  return [variable](Graph& graph, DType dtype, const Shape& shape) {
    check(variable.dtype() == dtype && variable.shape() == shape, "'", variable.name(), "' is ",
          variable.dtype(), variable.shape(), ", but what is to begin with its value is ", dtype,
          shape);
    return identity(initializer_of(graph, variable).output());
  };
}

Initializer truncated_normal(double stddev, int64_t seed) {
  return [=](Graph& graph, DType dtype, const VariablePart& part) {
    return scaled(drawn(graph, "TruncatedNormal", dtype, part, seed), stddev);
  };
}

Initializer random_uniform(double low, double high, int64_t seed) {
  return [=](Graph& graph, DType dtype, const VariablePart& part) {
    return scaled(drawn(graph, "RandomUniform", dtype, part, seed), high - low) + low;
  };
}

Initializer glorot_uniform(int64_t seed) {
  return [=](Graph& graph, DType dtype, const VariablePart& part) {
    const auto [in, out] = fans(part.whole);
    const double limit = std::sqrt(6.0 / (in + out));
    return random_uniform(-limit, limit, seed)(graph, dtype, part);
  };
}

Initializer he_normal(int64_t seed) {
  return [=](Graph& graph, DType dtype, const VariablePart& part) {
    return truncated_normal(std::sqrt(2.0 / fans(part.whole).first), seed)(graph, dtype, part);
  };
}

}  // namespace initializers

}  // namespace leat
