#include "frontends/cpp/initializers.h"

#include <algorithm>
#include <cmath>

#include "core/visit_dtype.h"
#include "frontends/cpp/variables.h"
#include "graph/ops/seed.h"

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
  auto [first, second] = random::seeds(graph, seed);
  if (first != 0 || second != 0) {
    for (const TensorSlice::Extent& extent : part.slice.extents) second += extent.start;
  }
  AttrMap attrs{{"dtype", dtype}, {"seed", first}, {"seed2", second}};
  return op(op_name, {Dims(part.shape()).in(graph)}, std::move(attrs));
}

Output scaled(Output x, double factor) { return factor == 1.0 ? x : x * factor; }

// fan_in and fan_out, as Keras' compute_fans.
std::pair<double, double> fans(const Shape& shape) {
  const int rank = shape.rank();
  if (rank == 0) return {1, 1};
  if (rank == 1) return {static_cast<double>(shape[0]), static_cast<double>(shape[0])};
  double positions = 1;
  for (int axis = 0; axis < rank - 2; ++axis) positions *= static_cast<double>(shape[axis]);
  return {positions * static_cast<double>(shape[rank - 2]),
          positions * static_cast<double>(shape[rank - 1])};
}

// The standard deviation of what is within two of a normal distribution's:
// sqrt(1 - 4 phi(2) / (2 Phi(2) - 1)).
constexpr double truncated_stddev = 0.87962566103423978;

// The part of a value that has been computed for the whole.
Output part_of_value(Output whole, const VariablePart& part) {
  if (part.slice.covers(part.whole)) return whole;
  const auto rank = static_cast<int64_t>(part.slice.extents.size());
  Tensor begin(i64, {rank}), size(i64, {rank});
  for (int64_t i = 0; i < rank; ++i) {
    begin.data<int64_t>()[i] = part.slice.extents[static_cast<size_t>(i)].start;
    size.data<int64_t>()[i] = part.slice.extents[static_cast<size_t>(i)].length;
  }
  Graph& graph = whole.graph();
  return op("Slice", {whole, constant(graph, std::move(begin)), constant(graph, std::move(size))});
}

// Uniform over the orthogonal matrices: Q of a normal matrix, with the signs that make the diagonal
// of R positive.
Output orthonormal(Graph& graph, DType dtype, int64_t rows, int64_t columns, int64_t seed) {
  const int64_t many = std::max(rows, columns), few = std::min(rows, columns);
  const Output normal = drawn(graph, "RandomStandardNormal", dtype, Shape{many, few}, seed);
  const std::vector<Output> qr = op_outputs("Qr", {normal});
  const Output diagonal = op("MatrixDiagPart", {qr[1]});
  const Output q = qr[0] * (1 - 2 * cast(diagonal < 0, dtype));
  return rows < columns ? transpose(q) : q;
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
          variable.dtype(), variable.shape(), ", but the variable that starts with its value is ",
          dtype, shape);
    const ControlScope after(graph, {initializer_of(graph, variable)});
    return read_variable(variable);
  };
}

Initializer Normal::operator()(const NormalOptions& options) const {
  return [op = is_truncated ? "TruncatedNormal" : "RandomStandardNormal", options](
             Graph& graph, DType dtype, const VariablePart& part) {
    const Output numbers = scaled(drawn(graph, op, dtype, part, options.seed), options.stddev);
    return options.mean == 0 ? numbers : numbers + options.mean;
  };
}

Initializer Uniform::operator()(const UniformOptions& options) const {
  return [options](Graph& graph, DType dtype, const VariablePart& part) {
    const Output numbers = drawn(graph, "RandomUniform", dtype, part, options.seed);
    return scaled(numbers, options.high - options.low) + options.low;
  };
}

Initializer variance_scaling(const VarianceScalingOptions& options, Location at) {
  check(options.scale > 0, "variance_scaling (", at, "): the scale must be positive, got ",
        options.scale);
  return [options](Graph& graph, DType dtype, const VariablePart& part) -> Output {
    const auto [in, out] = fans(part.whole);
    const double fan = options.fan == Fan::in ? in : options.fan == Fan::out ? out : (in + out) / 2;
    const double stddev = std::sqrt(options.scale / std::max(1.0, fan));
    switch (options.distribution) {
      case Distribution::normal:
        return random_normal(0, stddev, options.seed)(graph, dtype, part);
      case Distribution::uniform: {
        const double limit = std::sqrt(3.0) * stddev;
        return random_uniform(-limit, limit, options.seed)(graph, dtype, part);
      }
      default:
        return truncated_normal(0, stddev / truncated_stddev, options.seed)(graph, dtype, part);
    }
  };
}

Initializer VarianceScaling::operator()(SeedOptions options) const {
  return variance_scaling(
      {.scale = scale, .fan = fan, .distribution = distribution, .seed = options.seed});
}

Initializer Orthogonal::operator()(double gain, int64_t seed) const {
  return [=](Graph& graph, DType dtype, const VariablePart& part) {
    const Shape& shape = part.whole;
    const int rank = shape.rank();
    check(rank >= 2, "orthogonal needs a shape of rank 2 or more, got ", shape);
    check(is_floating(dtype), "orthogonal needs a floating-point variable, got ", dtype);
    check(seed != 0 || part.slice.covers(shape),
          "orthogonal needs a seed for a partitioned variable: ",
          "each part draws the whole matrix, and all parts must draw the same one");
    const int64_t columns = shape[rank - 1];
    const int64_t rows = columns == 0 ? 0 : shape.elements() / columns;
    const DType computed = dtype == f64 ? f64 : f32;
    Output out = scaled(orthonormal(graph, computed, rows, columns, seed), gain);
    if (rank > 2) out = reshape(out, shape);
    out = part_of_value(out, part);
    return dtype == computed ? out : cast(out, dtype);
  };
}

Initializer Identity::operator()(double gain) const {
  return [=](Graph& graph, DType dtype, const VariablePart& part) {
    const Shape& shape = part.whole;
    check(shape.rank() == 2, "identity needs a matrix, got shape ", shape);
    return part_of_value(scaled(eye(graph, shape[0], shape[1], dtype), gain), part);
  };
}

}  // namespace initializers

}  // namespace leat
