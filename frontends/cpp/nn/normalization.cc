#include "frontends/cpp/nn/normalization.h"

#include "graph/ops.h"
#include "graph/ops/raw.h"

namespace leat::nn {

BatchNorm::BatchNorm(Graph& graph, int64_t channels, BatchNormOptions options, Location at)
    : options_(std::move(options)) {
  check(channels > 0, "batch_norm layer '", options_.name, "' (", at,
        "): channels must be positive, got ", channels);
  check(options_.dtype == f32 || options_.dtype == f64, "batch_norm layer '", options_.name, "' (",
        at, "): its variables must be float or double, got ", options_.dtype);
  const NameScope scope(graph, options_.name);
  scope_ = scope.name();
  const auto make = [&](std::string_view part, const Initializer& initial, bool trainable) {
    return variable(graph, part, {channels}, initial, options_.dtype, {.trainable = trainable}, at);
  };
  if (options_.use_scale) gamma_ = make("gamma", initializers::ones(), true);
  if (options_.use_offset) beta_ = make("beta", initializers::zeros(), true);
  moving_mean_ = make("moving_mean", initializers::zeros(), false);
  moving_variance_ = make("moving_variance", initializers::ones(), false);
}

Output BatchNorm::operator()(Output x, TrainingFlag training, Location at) const {
  check(static_cast<bool>(x), "batch_norm layer '", options_.name, "' (", at,
        "): its input is an empty Output");
  const int64_t channels = moving_mean_.shape()[0];
  const bool is_double = moving_mean_.dtype() == f64;
  const Shape& shape = x.shape();
  const bool fits = shape.has_rank() && (shape.rank() == 2 || shape.rank() == 4) &&
                    shape[shape.rank() - 1] == channels && is_floating(x.dtype()) &&
                    (x.dtype() == f64) == is_double;
  check(fits, "batch_norm layer '", options_.name, "' (", at, "): the input must be ",
        is_double ? "double" : "float, half or bfloat16", ", [batch, ", channels,
        "] or [batch, height, width, ", channels, "], got ", x.name(), " ", x.dtype(), shape);
  const NameScope scope(x.graph(), scope_);
  const LocationScope line(x.graph(), at);
  const bool is_flat = shape.rank() == 2;
  const Output image = is_flat ? expand_dims(expand_dims(x, 1, at), 1, at) : x;
  Output y;
  if (!training.is_fixed() || training.value()) {
    const std::vector<Output> outputs = normalised(image, true, at);
    y = outputs[0];
    follow(moving_mean_, outputs[1], training, at);
    follow(moving_variance_, outputs[2], training, at);
  }
  if (!training.is_fixed()) {
    y = where(training.scalar(), y, normalised(image, false, at)[0], at);
  } else if (!training.value()) {
    y = normalised(image, false, at)[0];
  }
  return is_flat ? squeeze(y, {1, 2}, at) : y;
}

std::vector<Output> BatchNorm::normalised(Output image, bool is_training, Location at) const {
  Graph& graph = image.graph();
  const Shape& channels = moving_mean_.shape();
  const DType dtype = moving_mean_.dtype();
  const Output gamma = gamma_ ? gamma_ : ones(graph, channels, dtype, at);
  const Output beta = beta_ ? beta_ : zeros(graph, channels, dtype, at);
  if (dtype == f64) {  // FusedBatchNorm has no doubles
    std::vector<Output> out = {image, moving_mean_, moving_variance_};
    if (is_training) out = {image, mean(image, {0, 1, 2}, {}, at), var(image, {0, 1, 2}, {}, at)};
    out[0] = (image - out[1]) * (rsqrt(out[2] + options_.epsilon, at) * gamma) + beta;
    if (is_training) {  // the average is of unbiased variances, as FusedBatchNorm has them
      const Output n = cast(size_of(image, i64, at), f64, at) / static_cast<double>(channels[0]);
      out[2] = out[2] * n / maximum(n - 1, 1);
    }
    return out;
  }
  // In training it takes the averages from the batch, and these must be empty.
  const Output none = leat::constant(graph, Tensor(f32, {0}), "none", at);
  return fused_batch_norm(image, gamma, beta, is_training ? none : moving_mean_,
                          is_training ? none : moving_variance_,
                          {{"epsilon", options_.epsilon}, {"is_training", is_training}}, at);
}

void BatchNorm::follow(Output average, Output of_batch, const TrainingFlag& training,
                       Location at) const {
  Graph& graph = average.graph();
  const ColocationScope with(graph, {average});
  Output change = (average - of_batch) * (1 - options_.momentum);
  if (!training.is_fixed()) change = where(training.scalar(), change, 0, at);
  graph.add_to_collection("update_ops", assign_sub(average, change, at));
}

Output batch_norm(Output x, const BatchNormOptions& options, Location at) {
  check(bool{x}, "batch_norm layer '", options.name, "' (", at, "): its input is an empty Output");
  const Shape& shape = x.shape();
  check(shape.rank() > 0 && shape[shape.rank() - 1] > 0, "batch_norm layer '", options.name, "' (",
        at, "): the channels of its input must be known, got ", x.name(), " ", x.dtype(), shape);
  BatchNormOptions own = options;
  if (x.dtype() == f64) own.dtype = f64;
  return BatchNorm(x.graph(), shape[shape.rank() - 1], own, at)(x, options.training, at);
}

LayerNorm::LayerNorm(Graph& graph, LayerNormOptions options)
    : options_(std::move(options)), scope_(NameScope(graph, options_.name).name()) {}

Output LayerNorm::operator()(Output x, Location at) const {
  check(bool{x}, "layer_norm '", options_.name, "' (", at, "): its input is an empty Output");
  const Shape& shape = x.shape();
  check(shape.rank() > 0 && shape[shape.rank() - 1] > 0, "layer_norm '", options_.name, "' (", at,
        "): the last extent of its input must be known, got ", x.name(), " ", x.dtype(), shape);
  Graph& graph = x.graph();
  const NameScope scope(graph, scope_);
  const LocationScope line(graph, at);
  const int64_t extent = shape[shape.rank() - 1];
  if (made_->extent == 0) {
    made_->extent = extent;
    if (options_.use_scale)
      made_->gamma = variable(graph, "gamma", {extent}, initializers::ones(), x.dtype(), {}, at);
    if (options_.use_offset)
      made_->beta = variable(graph, "beta", {extent}, initializers::zeros(), x.dtype(), {}, at);
  }
  check(made_->extent == extent, "layer_norm '", options_.name, "' (", at, "): it was made for ",
        made_->extent, " features, but ", x.name(), " has ", shape);
  const Output centred = x - mean(x, -1, {.keep_dims = true}, at);
  const Output variance = mean(square(centred, at), -1, {.keep_dims = true}, at);
  Output y = centred * rsqrt(variance + options_.epsilon, at);
  if (made_->gamma) y = y * made_->gamma;
  if (made_->beta) y = y + made_->beta;
  return y;
}

Output layer_norm(Output x, const LayerNormOptions& options, Location at) {
  check(bool{x}, "layer_norm '", options.name, "' (", at, "): its input is an empty Output");
  return LayerNorm(x.graph(), options)(x, at);
}

Output group_norm(Output x, int64_t groups, const GroupNormOptions& options, Location at) {
  const std::string title = concat("group_norm '", options.name, "' (", at, ")");
  check(bool{x}, title, ": its input is an empty Output");
  const Shape& shape = x.shape();
  check(shape.rank() >= 2 && shape[shape.rank() - 1] > 0, title,
        ": the input must be [batch, …, channels] with rank and channels known, got ", x.name(),
        " ", x.dtype(), shape);
  const int64_t channels = shape[shape.rank() - 1];
  check(groups > 0 && channels % groups == 0, title, ": ", channels,
        " channels cannot be cut into ", groups, " groups of one size");
  Graph& graph = x.graph();
  const NameScope scope(graph, options.name);
  const LocationScope line(graph, at);
  const Output cut =
      reshape(x,
              concatenate({shape_of(x, i32, at)[{slice(0, -1)}],
                           leat::constant(graph, {groups, channels / groups}, i32, "groups", at)},
                          0, at),
              at);
  std::vector<int> axes;  // all but the batch and the groups
  for (int axis = 1; axis < shape.rank() - 1; ++axis) axes.push_back(axis);
  axes.push_back(shape.rank());
  const Output centred = cut - mean(cut, axes, {.keep_dims = true}, at);
  const Output variance = mean(square(centred, at), axes, {.keep_dims = true}, at);
  const Output normal = centred * rsqrt(variance + options.epsilon, at);
  Output y = reshape(normal, shape_of(x, i32, at), at);
  if (options.use_scale)
    y = y * variable(graph, "gamma", {channels}, initializers::ones(), x.dtype(), {}, at);
  if (options.use_offset)
    y = y + variable(graph, "beta", {channels}, initializers::zeros(), x.dtype(), {}, at);
  return y;
}

Output instance_norm(Output x, const GroupNormOptions& options, Location at) {
  check(bool{x}, "instance_norm '", options.name, "' (", at, "): its input is an empty Output");
  const Shape& shape = x.shape();
  check(shape.rank() >= 2 && shape[shape.rank() - 1] > 0, "instance_norm '", options.name, "' (",
        at, "): the input must be [batch, …, channels] with rank and channels known, got ",
        x.name(), " ", x.dtype(), shape);
  return group_norm(x, shape[shape.rank() - 1], options, at);
}

Output l2_normalize(Output x, const Axes& axes, double epsilon, Location at) {
  check(bool{x}, "l2_normalize (", at, "): its input is an empty Output");
  const LocationScope line(x.graph(), at);
  const Output length = sum(square(x, at), axes, {.keep_dims = true}, at);
  return x * rsqrt(maximum(length, epsilon), at);
}

Output local_response_normalization(Output x, const LrnOptions& options, Location at) {
  check(bool{x}, "local_response_normalization (", at, "): its input is an empty Output");
  return op("LRN", {x},
            {{"depth_radius", options.depth_radius},
             {"bias", static_cast<float>(options.bias)},
             {"alpha", static_cast<float>(options.alpha)},
             {"beta", static_cast<float>(options.beta)}},
            at);
}

}  // namespace leat::nn
