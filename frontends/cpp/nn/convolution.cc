#include "frontends/cpp/nn/convolution.h"

namespace leat::nn {
namespace {

void check_image(std::string_view layer, const Output& x, Location at) {
  check(bool{x}, layer, " (", at, "): its input is an empty Output");
  const Shape& shape = x.shape();
  check(shape.rank() == 4 && shape[3] > 0, layer, " (", at,
        "): the input must be [batch, height, width, channels] with channels known, got ", x.name(),
        " ", x.dtype(), shape);
}

std::string title(std::string_view kind, const Conv2dOptions& options) {
  return concat(kind, " layer '", options.name, "'");
}

}  // namespace

Conv2d::Conv2d(Graph& graph, int64_t filters, Extents2d size, Conv2dOptions options, Location at)
    : options_(std::move(options)), filters_(filters), size_(size) {
  check(filters > 0 && size.y > 0 && size.x > 0, title("conv2d", options_), " (", at,
        "): filters and size must be positive, got ", filters, " and ", size.y, " x ", size.x);
  scope_ = NameScope(graph, options_.name).name();
}

void Conv2d::make(Graph& graph, int64_t channels, Location at) const {
  check(channels > 0, title("conv2d", options_), " (", at, "): channels must be positive, got ",
        channels);
  const NameScope scope(graph, scope_);
  made_->kernel = variable(graph, "kernel", {size_.y, size_.x, channels, filters_},
                           options_.kernel_initializer, options_.dtype, {}, at);
  if (options_.use_bias)
    made_->bias =
        variable(graph, "bias", {filters_}, options_.bias_initializer, options_.dtype, {}, at);
}

Output Conv2d::operator()(Output x, Location at) const {
  check(bool{x}, title("conv2d", options_), " (", at, "): its input is an empty Output");
  if (!made_->kernel) {
    check_image(title("conv2d", options_), x, at);
    make(x.graph(), x.shape()[3], at);
  }
  const auto& [kernel, bias] = *made_;
  const NameScope scope(x.graph(), scope_);
  const LocationScope line(x.graph(), at);
  Output y = leat::conv2d(
      x, kernel,
      {.strides = options_.strides, .padding = options_.padding, .dilations = options_.dilations},
      at);
  if (bias) y = bias_add(y, bias, at);
  return options_.activation(y, at);
}

Output conv2d(Output x, int64_t filters, Extents2d size, const Conv2dOptions& options,
              Location at) {
  check_image(title("conv2d", options), x, at);
  Conv2dOptions own = options;
  own.dtype = x.dtype();
  return Conv2d(x.graph(), x.shape()[3], filters, size, std::move(own), at)(x, at);
}

Output depthwise_conv2d(Output x, Extents2d size, int64_t multiplier, const Conv2dOptions& options,
                        Location at) {
  check_image(title("depthwise_conv2d", options), x, at);
  check(multiplier > 0, title("depthwise_conv2d", options), " (", at,
        "): the multiplier must be positive, got ", multiplier);
  const NameScope scope(x.graph(), options.name);
  const LocationScope line(x.graph(), at);
  const int64_t channels = x.shape()[3];
  const Output kernel = variable(x.graph(), "kernel", {size.y, size.x, channels, multiplier},
                                 options.kernel_initializer, x.dtype(), {}, at);
  Output y = leat::depthwise_conv2d(
      x, kernel,
      {.strides = options.strides, .padding = options.padding, .dilations = options.dilations}, at);
  if (options.use_bias) {
    y = bias_add(y,
                 variable(x.graph(), "bias", {channels * multiplier}, options.bias_initializer,
                          x.dtype(), {}, at),
                 at);
  }
  return options.activation(y, at);
}

Output separable_conv2d(Output x, int64_t filters, Extents2d size, int64_t multiplier,
                        const Conv2dOptions& options, Location at) {
  check_image(title("separable_conv2d", options), x, at);
  check(filters > 0 && multiplier > 0, title("separable_conv2d", options), " (", at,
        "): filters and the multiplier must be positive, got ", filters, " and ", multiplier);
  Graph& graph = x.graph();
  const NameScope scope(graph, options.name);
  const LocationScope line(graph, at);
  const int64_t channels = x.shape()[3];
  const Output depthwise =
      variable(graph, "depthwise_kernel", {size.y, size.x, channels, multiplier},
               options.kernel_initializer, x.dtype(), {}, at);
  const Output pointwise =
      variable(graph, "pointwise_kernel", {1, 1, channels * multiplier, filters},
               options.kernel_initializer, x.dtype(), {}, at);
  Output y = leat::depthwise_conv2d(
      x, depthwise,
      {.strides = options.strides, .padding = options.padding, .dilations = options.dilations}, at);
  y = leat::conv2d(y, pointwise, {}, at);
  if (options.use_bias)
    y = bias_add(y, variable(graph, "bias", {filters}, options.bias_initializer, x.dtype(), {}, at),
                 at);
  return options.activation(y, at);
}

Output conv1d(Output x, int64_t filters, int64_t size, const Conv1dOptions& options, Location at) {
  const std::string layer = concat("conv1d layer '", options.name, "' (", at, ")");
  check(bool{x}, layer, ": its input is an empty Output");
  const Shape& shape = x.shape();
  check(shape.rank() == 3 && shape[2] > 0, layer,
        ": the input must be [batch, length, channels] with channels known, got ", x.name(), " ",
        x.dtype(), shape);
  check(filters > 0 && size > 0, layer, ": filters and size must be positive, got ", filters,
        " and ", size);
  check(options.padding.name() != "EXPLICIT", layer, ": the padding must be `same` or `valid`");
  Graph& graph = x.graph();
  const NameScope scope(graph, options.name);
  const LocationScope line(graph, at);
  const Output kernel = variable(graph, "kernel", {size, shape[2], filters},
                                 options.kernel_initializer, x.dtype(), {}, at);
  Output y = squeeze(leat::conv2d(expand_dims(x, 1, at), expand_dims(kernel, 0, at),
                                  {.strides = {1, options.strides},
                                   .padding = options.padding,
                                   .dilations = {1, options.dilations}},
                                  at),
                     1, at);
  if (options.use_bias)
    y = y + variable(graph, "bias", {filters}, options.bias_initializer, x.dtype(), {}, at);
  return options.activation(y, at);
}

Output conv2d_transpose(Output x, int64_t filters, Extents2d size, const Conv2dOptions& options,
                        Location at) {
  check_image(title("conv2d_transpose", options), x, at);
  const Shape& shape = x.shape();
  check(shape[1] != any && shape[2] != any, title("conv2d_transpose", options), " (", at,
        "): height and width must be known, got ", x.name(), " ", shape);
  const bool is_same = options.padding.name() == "SAME";
  check(is_same || options.padding.name() == "VALID", title("conv2d_transpose", options), " (", at,
        "): the padding must be `same` or `valid`");
  const NameScope scope(x.graph(), options.name);
  const LocationScope line(x.graph(), at);
  const Output kernel = variable(x.graph(), "kernel", {size.y, size.x, filters, shape[3]},
                                 options.kernel_initializer, x.dtype(), {}, at);
  const auto extent = [&](int64_t in, int64_t stride, int64_t window) {
    return is_same ? in * stride : (in - 1) * stride + window;
  };
  const int64_t height = extent(shape[1], options.strides.y, size.y);
  const int64_t width = extent(shape[2], options.strides.x, size.x);
  Output y;
  const ConvolutionOptions how = {
      .strides = options.strides, .padding = options.padding, .dilations = options.dilations};
  if (shape[0] != any) {
    y = leat::conv2d_transpose(x, kernel, {shape[0], height, width, filters}, how, at);
  } else {
    const Output rest = constant(
        x.graph(),
        Tensor::of<int32_t>({3}, {static_cast<int32_t>(height), static_cast<int32_t>(width),
                                  static_cast<int32_t>(filters)}));
    const Output dims = concatenate({shape_of(x, i32, at)[slice(0, 1)], rest}, 0, at);
    y = leat::conv2d_transpose(x, kernel, dims, how, at);
  }
  if (options.use_bias) {
    y = bias_add(
        y, variable(x.graph(), "bias", {filters}, options.bias_initializer, x.dtype(), {}, at), at);
  }
  return options.activation(y, at);
}

Output global_average_pool(Output x, Location at) {
  check_image("global_average_pool", x, at);
  return mean(x, {1, 2}, {}, at);
}

Output global_max_pool(Output x, Location at) {
  check_image("global_max_pool", x, at);
  return max(x, {1, 2}, {}, at);
}

}  // namespace leat::nn
