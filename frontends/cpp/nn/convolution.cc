#include "frontends/cpp/nn.h"

#include <limits>

namespace leat::nn {

Dense::Dense(Graph& graph, int64_t inputs, int64_t units, std::string_view name,
             DenseOptions options, DType dtype, Location at)
    : name_(name), options_(std::move(options)) {
  check(inputs > 0 && units > 0, "dense layer '", name, "' (", at,
        "): inputs and units must be positive, got ", inputs, " and ", units);
  const NameScope scope(graph, name);
  scope_ = scope.name();
  kernel_ = variable(graph, "kernel", {inputs, units}, options_.kernel_initializer, dtype, {}, at);
  if (options_.use_bias)
    bias_ = variable(graph, "bias", {units}, options_.bias_initializer, dtype, {}, at);
}

Output Dense::operator()(Output x, Location at) const {
  check(static_cast<bool>(x), "dense layer '", name_, "' (", at, "): its input is an empty Output");
  const NameScope scope(x.graph(), scope_);
  Output y = matmul(x, kernel_, {}, at);
  if (bias_) y = bias_add(y, bias_, at);
  return options_.activation ? options_.activation(y) : y;
}

Output dense(Output x, int64_t units, std::string_view name, const DenseOptions& options,
             Location at) {
  check(static_cast<bool>(x), "dense layer '", name, "' (", at, "): its input is an empty Output");
  const Shape& shape = x.shape();
  check(shape.rank() == 2 && shape[1] > 0, "dense layer '", name, "' (", at,
        "): the input must be [batch, n] with n known, got ", x.name(), " ", x.dtype(), shape);
  return Dense(x.graph(), shape[1], units, name, options, x.dtype(), at)(x, at);
}

namespace {

Padding padding_of(std::string_view text, Location at) {
  check(text == "SAME" || text == "VALID", "the padding (", at,
        ") is \"SAME\" or \"VALID\", not \"", text, "\"");
  return text == "SAME" ? Padding(same) : Padding(valid);
}

// Where it is known before a step: an empty image has no mean.
void check_window(std::string_view what, const Output& x, int64_t size, std::string_view padding,
                  Location at) {
  check(static_cast<bool>(x), what, " (", at, "): its input is an empty Output");
  const Shape& shape = x.shape();
  if (padding != "VALID" || !shape.has_rank() || shape.rank() != 4) return;
  for (const int axis : {1, 2}) {
    check(shape[axis] == any || shape[axis] >= size, what, " (", at, "): a window of ", size,
          " does not fit into ", x.name(), " ", shape, "; pad it (\"SAME\") or take a smaller one");
  }
}

}  // namespace

Conv2d::Conv2d(Graph& graph, int64_t channels, int64_t filters, int64_t size, std::string_view name,
               Conv2dOptions options, DType dtype, Location at)
    : name_(name), options_(std::move(options)) {
  check(channels > 0 && filters > 0 && size > 0, "conv2d layer '", name, "' (", at,
        "): channels, filters and size must be positive, got ", channels, ", ", filters, " and ",
        size);
  const NameScope scope(graph, name);
  scope_ = scope.name();
  kernel_ = variable(graph, "kernel", {size, size, channels, filters}, options_.kernel_initializer,
                     dtype, {}, at);
  if (options_.use_bias)
    bias_ = variable(graph, "bias", {filters}, options_.bias_initializer, dtype, {}, at);
}

Output Conv2d::operator()(Output x, Location at) const {
  check_window(concat("conv2d layer '", name_, "'"), x, kernel_.shape()[0], options_.padding, at);
  const NameScope scope(x.graph(), scope_);
  Output y = leat::conv2d(
      x, kernel_, {.strides = options_.stride, .padding = padding_of(options_.padding, at)}, at);
  if (bias_) y = bias_add(y, bias_, at);
  return options_.activation ? options_.activation(y) : y;
}

Output conv2d(Output x, int64_t filters, int64_t size, std::string_view name,
              const Conv2dOptions& options, Location at) {
  check(static_cast<bool>(x), "conv2d layer '", name, "' (", at, "): its input is an empty Output");
  const Shape& shape = x.shape();
  check(shape.rank() == 4 && shape[3] > 0, "conv2d layer '", name, "' (", at,
        "): the input must be [batch, height, width, channels] with channels known, got ", x.name(),
        " ", x.dtype(), shape);
  return Conv2d(x.graph(), shape[3], filters, size, name, options, x.dtype(), at)(x, at);
}

Output max_pool(Output x, int64_t size, int64_t stride, std::string_view padding, Location at) {
  check_window("max_pool", x, size, padding, at);
  return leat::max_pool(x, {.size = size, .strides = stride, .padding = padding_of(padding, at)},
                        at);
}

Output avg_pool(Output x, int64_t size, int64_t stride, std::string_view padding, Location at) {
  check_window("avg_pool", x, size, padding, at);
  return leat::avg_pool(x, {.size = size, .strides = stride, .padding = padding_of(padding, at)},
                        at);
}

BatchNorm::BatchNorm(Graph& graph, int64_t channels, std::string_view name,
                     BatchNormOptions options, Location at)
    : name_(name), options_(options) {
  check(channels > 0, "batch_norm layer '", name, "' (", at, "): it needs channels, got ",
        channels);
  const NameScope scope(graph, name);
  scope_ = scope.name();
  const auto make = [&](std::string_view part, const Initializer& initial, bool trainable) {
    return variable(graph, part, {channels}, initial, f32, {.trainable = trainable}, at);
  };
  if (options_.use_scale) gamma_ = make("gamma", initializers::ones(), true);
  if (options_.use_offset) beta_ = make("beta", initializers::zeros(), true);
  moving_mean_ = make("moving_mean", initializers::zeros(), false);
  moving_variance_ = make("moving_variance", initializers::ones(), false);
}

Output BatchNorm::operator()(Output x, bool is_training, Location at) const {
  check(static_cast<bool>(x), "batch_norm layer '", name_, "' (", at,
        "): its input is an empty Output");
  const int64_t channels = moving_mean_.shape()[0];
  const Shape& shape = x.shape();
  const bool fits = shape.has_rank() && (shape.rank() == 2 || shape.rank() == 4) &&
                    shape[shape.rank() - 1] == channels && x.dtype() == f32;
  check(fits, "batch_norm layer '", name_, "' (", at, "): the input must be float, [batch, ",
        channels, "] or [batch, height, width, ", channels, "], got ", x.name(), " ", x.dtype(),
        shape);
  Graph& graph = x.graph();
  const NameScope scope(graph, scope_);
  const auto filled = [&](float value) {
    return leat::constant(
        graph,
        Tensor::of<float>({channels}, std::vector<float>(static_cast<size_t>(channels), value)),
        "Const", at);
  };
  const bool is_flat = shape.rank() == 2;
  Output image = x;
  if (is_flat) image = expand_dims(expand_dims(x, 1, at), 1, at);
  const Output gamma = gamma_ ? gamma_ : filled(1), beta = beta_ ? beta_ : filled(0);
  // In training it takes the averages from the batch, and these must be empty.
  const Output none = leat::constant(graph, Tensor(f32, {0}), "none", at);
  const std::vector<Output> outputs = fused_batch_norm(
      image, gamma, beta, is_training ? none : moving_mean_, is_training ? none : moving_variance_,
      {{"epsilon", options_.epsilon}, {"is_training", is_training}}, at);
  if (is_training) {
    follow(moving_mean_, outputs[1], at);
    follow(moving_variance_, outputs[2], at);
  }
  return is_flat ? squeeze(outputs[0], {1, 2}, at) : outputs[0];
}

void BatchNorm::follow(Output average, Output of_batch, Location at) const {
  Graph& graph = average.graph();
  const ColocationScope with(graph, {average});
  const Output change = (average - of_batch) * (1 - options_.momentum);
  graph.add_to_collection("update_ops", assign_sub(average, change, at));
}

// `draw`: of a shape, numbers in [0, 1).
template <class Draw>
Output dropped_out(Output x, double rate, Location at, Draw&& draw) {
  check(static_cast<bool>(x), "dropout (", at, "): its input is an empty Output");
  check(rate >= 0 && rate < 1, "dropout (", at, "): the rate must be in [0, 1), got ", rate);
  if (rate == 0) return x;
  const NameScope scope(x.graph(), "dropout");
  const Output drawn = draw(shape_of(x, i32, at));
  return x * (1 / (1 - rate)) * cast(greater_equal({drawn, at}, rate), x.dtype(), at);
}

Output dropout(Output x, double rate, int64_t seed, Location at) {
  return dropped_out(x, rate, at, [&](Output shape) {
    return random::uniform(x.graph(), shape, {.dtype = x.dtype(), .seed = seed}, at);
  });
}

Output dropout(Output x, double rate, int64_t seed, Output step, Location at) {
  check(step && is_integer(step.dtype()), "dropout (", at, "): its step is ",
        step ? concat(step.name(), " ", step.dtype()) : "an empty Output", ", not an integer");
  return dropped_out(x, rate, at, [&](Output shape) {
    const Output first = constant(x.graph(), Tensor::scalar(seed));
    return op("StatelessRandomUniform", {shape, stack({first, cast(step, i64, at)})},
              {{"dtype", x.dtype()}}, at);
  });
}

Embedding::Embedding(Graph& graph, int64_t rows, int64_t size, std::string_view name,
                     Initializer initializer, DType dtype, Location at)
    : name_(name) {
  check(rows > 0 && size > 0, "embedding '", name, "' (", at,
        "): rows and size must be positive, got ", rows, " and ", size);
  const NameScope scope(graph, name);
  scope_ = scope.name();
  embeddings_ = variable(graph, "embeddings", {rows, size}, initializer, dtype, {}, at);
}

Output Embedding::operator()(Output ids, Location at) const {
  check(ids && is_integer(ids.dtype()), "embedding '", name_, "' (", at,
        "): it needs ids, int32 or int64, got ",
        ids ? concat(ids.name(), " ", ids.dtype()) : "none");
  const NameScope scope(ids.graph(), scope_);
  return take(embeddings_, ids, 0, at);
}

Output flatten(Output x, Location at) {
  const Shape& shape = x.shape();
  constexpr int64_t most = std::numeric_limits<int32_t>::max();  // the shape is one of int32
  int64_t n = 1;
  for (int i = 1; i < shape.rank(); ++i) {
    check(shape[i] != any, "flatten (", at, "): all extents but the batch's must be known, got ",
          x.name(), " ", shape);
    check(shape[i] == 0 || n <= most / shape[i], "flatten (", at, "): rows of more than ", most,
          " elements, got ", x.name(), " ", shape);
    n *= shape[i];
  }
  check(shape.rank() >= 1, "flatten (", at, "): the rank must be at least 1, got ", x.name(), " ",
        shape);
  return reshape(x, {-1, n}, at);
}

Output softmax_cross_entropy(Output logits, Output labels, Location at) {
  check(logits && labels, "softmax_cross_entropy (", at, "): an operand is an empty Output");
  const Shape& shape = labels.shape();
  const bool are_classes = is_integer(labels.dtype());
  check(are_classes || !shape.has_rank() || shape.rank() == 2, "softmax_cross_entropy (", at,
        "): labels must be class numbers (int32 or int64, [batch]) or probabilities ([batch, "
        "classes]), got ",
        labels.name(), " ", labels.dtype(), shape);
  return leat::softmax_cross_entropy(logits, labels, at);
}

Output accuracy(Output logits, Output labels, Location at) {
  check(logits && labels, "accuracy (", at, "): an operand is an empty Output");
  const Shape &rows = logits.shape(), &classes = labels.shape();
  const bool fits = is_integer(labels.dtype()) && (!classes.has_rank() || classes.rank() == 1) &&
                    (!rows.has_rank() || rows.rank() == 2);
  const bool are_as_many = !fits || !rows.has_rank() || !classes.has_rank() || rows[0] == any ||
                           classes[0] == any || rows[0] == classes[0];
  check(
      fits && are_as_many, "accuracy (", at,
      "): logits must be [batch, classes] and labels class numbers (int32 or int64, [batch]), got ",
      logits.name(), " ", logits.dtype(), rows, " and ", labels.name(), " ", labels.dtype(),
      classes);
  Graph& graph = logits.graph();
  const NameScope scope(graph, "accuracy");
  const Output guess = cast(argmax(logits, 1, {}, at), labels.dtype(), at);
  return mean(cast(equal({guess, at}, labels), f32, at), {}, {}, at);
}

}  // namespace leat::nn
