#include "frontends/cpp/nn/dense.h"

#include <limits>

namespace leat::nn {

Dense::Dense(Graph& graph, int64_t units, DenseOptions options, Location at)
    : options_(std::move(options)), units_(units) {
  check(units > 0, "dense layer '", options_.name, "' (", at, "): units must be positive, got ",
        units);
  scope_ = NameScope(graph, options_.name).name();
}

Dense::Dense(Graph& graph, int64_t inputs, int64_t units, DenseOptions options, Location at)
    : Dense(graph, units, std::move(options), at) {
  check(inputs > 0, "dense layer '", options_.name, "' (", at, "): inputs must be positive, got ",
        inputs);
  make(graph, inputs, at);
}

void Dense::make(Graph& graph, int64_t inputs, Location at) const {
  check(is_floating(options_.dtype), "dense layer '", options_.name, "' (", at,
        "): it needs floating-point numbers, got ", options_.dtype, ": cast() the input");
  const NameScope scope(graph, scope_);
  made_->kernel = variable(graph, "kernel", {inputs, units_}, options_.kernel_initializer,
                           options_.dtype, {}, at);
  if (options_.use_bias)
    made_->bias =
        variable(graph, "bias", {units_}, options_.bias_initializer, options_.dtype, {}, at);
}

Output Dense::operator()(Output x, Location at) const {
  check(bool{x}, "dense layer '", options_.name, "' (", at, "): its input is an empty Output");
  const Shape& shape = x.shape();
  if (!made_->kernel) {
    check(shape.rank() >= 2 && shape[shape.rank() - 1] > 0, "dense layer '", options_.name, "' (",
          at, "): its first input must be [batch, ..., n] with n known, got ", x.name(), " ",
          x.dtype(), shape);
    make(x.graph(), shape[shape.rank() - 1], at);
  }
  const auto& [kernel, bias] = *made_;
  const NameScope scope(x.graph(), scope_);
  const LocationScope line(x.graph(), at);
  const bool is_flat = !shape.has_rank() || shape.rank() == 2;
  Output rows = x;
  if (!is_flat) rows = reshape(x, {-1, kernel.shape()[0]}, at);
  Output y = matmul(rows, kernel, {}, at);
  if (bias) y = bias_add(y, bias, at);
  y = options_.activation(y, at);
  if (is_flat) return y;
  Shape known = shape;
  known.set(shape.rank() - 1, units_);
  if (std::count(known.dims().begin(), known.dims().end(), int64_t{any}) <= 1)
    return reshape(y, known, at);
  const Output leading = shape_of(x, i32, at)[slice(0, -1)];
  return reshape(
      y, concatenate({leading, constant(x.graph(), {static_cast<int32_t>(units_)})}, 0, at), at);
}

Output dense(Output x, int64_t units, const DenseOptions& options, Location at) {
  check(bool{x}, "dense layer '", options.name, "' (", at, "): its input is an empty Output");
  const Shape& shape = x.shape();
  check(shape.rank() >= 2 && shape[shape.rank() - 1] > 0, "dense layer '", options.name, "' (", at,
        "): the input must be [batch, ..., n] with n known, got ", x.name(), " ", x.dtype(), shape);
  DenseOptions own = options;
  own.dtype = x.dtype();
  return Dense(x.graph(), shape[shape.rank() - 1], units, std::move(own), at)(x, at);
}

Output dropout(Output x, double rate, const DropoutOptions& options, Location at) {
  check(bool{x}, "dropout (", at, "): its input is an empty Output");
  check(rate >= 0 && rate < 1, "dropout (", at, "): the rate must be in [0, 1), got ", rate);
  const TrainingFlag& training = options.training;
  if (rate == 0 || (training.is_fixed() && !training.value())) return x;
  Graph& graph = x.graph();
  const NameScope scope(graph, "dropout");
  const LocationScope line(graph, at);
  const Output shape = shape_of(x, i32, at), step = options.step;
  Output drawn;  // in [0, 1)
  if (step) {
    check(is_integer(step.dtype()), "dropout (", at, "): its step is ", step.name(), " ",
          step.dtype(), ", not an integer");
    const Output seed = constant(graph, Tensor::scalar(options.seed));
    drawn = op("StatelessRandomUniform", {shape, stack({seed, cast(step, i64, at)})},
               {{"dtype", x.dtype()}}, at);
  } else {
    drawn = random::uniform(graph, shape, {.dtype = x.dtype(), .seed = options.seed}, at);
  }
  const Output y = x * (1 / (1 - rate)) * cast(greater_equal({drawn, at}, rate), x.dtype(), at);
  return training.is_fixed() ? y : where(training.scalar(), y, x, at);
}

Output flatten(Output x, Location at) {
  check(bool{x}, "flatten (", at, "): its input is an empty Output");
  const Shape& shape = x.shape();
  constexpr int64_t most = std::numeric_limits<int32_t>::max();  // the shape is one of int32
  int64_t n = 1;
  for (int i = 1; i < shape.rank(); ++i) {
    check(shape[i] != any, "flatten (", at, "): all extents but the batch's must be known, got ",
          x.name(), " ", shape);
    check(shape[i] == 0 || n <= most / shape[i], "flatten (", at, "): a row can have at most ",
          most, " elements, got ", x.name(), " ", shape);
    n *= shape[i];
  }
  check(shape.rank() >= 1, "flatten (", at, "): the rank must be at least 1, got ", x.name(), " ",
        shape);
  return reshape(x, {-1, n}, at);
}

}  // namespace leat::nn
