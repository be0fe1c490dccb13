#include "graph/ops/neural.h"

#include <cmath>

#include "graph/ops/arrays.h"
#include "graph/ops/graph_of.h"
#include "graph/ops/index.h"
#include "graph/ops/math.h"

namespace leat {
namespace {

std::vector<int64_t> of_images(const Extents2d& extents) { return {1, extents.y, extents.x, 1}; }

AttrMap attrs_of(const ConvolutionOptions& options) {
  AttrMap attrs = {{"strides", of_images(options.strides)},
                   {"dilations", of_images(options.dilations)},
                   {"padding", options.padding.name()}};
  if (!options.padding.widths().empty())
    attrs.emplace("explicit_paddings", options.padding.widths());
  return attrs;
}

// Where it is known before a step: nothing comes of an image smaller than the window.
void check_window(std::string_view what, const Output& x, const Extents2d& size,
                  const Padding& padding, Location at) {
  graph_of(x, at);
  const Shape& shape = x.shape();
  if (padding.name() != "VALID" || shape.rank() != 4) return;
  for (const auto& [extent, window] : {std::pair{shape[1], size.y}, {shape[2], size.x}}) {
    check(extent == any || extent >= window, what, " (", at, "): a window of ", window,
          " does not fit into ", x.name(), " ", shape,
          "; pad it (.padding = same) or take a smaller one");
  }
}

Output pool(std::string_view name, Output x, const PoolOptions& options, Location at) {
  check_window(name == "MaxPool" ? "max_pool" : "avg_pool", x, options.size, options.padding, at);
  const Extents2d strides{options.strides.y == 0 ? options.size.y : options.strides.y,
                          options.strides.x == 0 ? options.size.x : options.strides.x};
  AttrMap attrs = {{"ksize", of_images(options.size)},
                   {"strides", of_images(strides)},
                   {"padding", options.padding.name()}};
  if (!options.padding.widths().empty())
    attrs.emplace("explicit_paddings", options.padding.widths());
  return op(name, {x}, std::move(attrs), at);
}

// As far as it can be told.
bool is_last(int axis, const Output& x) {
  return axis == -1 || (x.shape().has_rank() && axis == x.shape().rank() - 1);
}

}  // namespace

Output relu(Output x, Location at) { return op("Relu", {x}, {}, at); }
Output relu6(Output x, Location at) { return op("Relu6", {x}, {}, at); }
Output leaky_relu(Output x, double slope, Location at) {
  return op("LeakyRelu", {x}, {{"alpha", slope}}, at);
}
Output elu(Output x, Location at) { return op("Elu", {x}, {}, at); }
Output selu(Output x, Location at) { return op("Selu", {x}, {}, at); }
Output softplus(Output x, Location at) { return op("Softplus", {x}, {}, at); }
Output softsign(Output x, Location at) { return op("Softsign", {x}, {}, at); }
Output sigmoid(Output x, Location at) { return op("Sigmoid", {x}, {}, at); }
Output silu(Output x, Location at) { return Operand(x, at) * Operand(sigmoid(x, at), at); }
Output gelu(Output x, Location at) {
  const Output ratio = op("Erf", {Operand(x, at) * Operand(std::sqrt(0.5), at)}, {}, at);
  return Operand(Operand(x, at) * Operand(0.5, at), at) *
         Operand(Operand(ratio, at) + Operand(1, at), at);
}
Output leaky_relu(Output x, Location at) { return leaky_relu(x, 0.2, at); }
Output softmax(Output logits, Location at) { return op("Softmax", {logits}, {}, at); }
Output log_softmax(Output logits, Location at) { return op("LogSoftmax", {logits}, {}, at); }
Output softmax(Output logits, int axis, Location at) {
  return is_last(axis, logits) ? softmax(logits, at) : exp(log_softmax(logits, axis, at), at);
}
Output log_softmax(Output logits, int axis, Location at) {
  if (is_last(axis, logits)) return log_softmax(logits, at);
  return Operand(logits, at) - logsumexp(logits, axis, {.keep_dims = true}, at);
}

Output conv2d(Output x, Output filter, const ConvolutionOptions& options, Location at) {
  graph_of(filter, at);
  const Shape& kernel = filter.shape();
  const auto extent = [](int64_t size, int64_t dilation) { return (size - 1) * dilation + 1; };
  if (kernel.rank() == 4 && kernel[0] != any && kernel[1] != any) {
    check_window("conv2d", x,
                 {extent(kernel[0], options.dilations.y), extent(kernel[1], options.dilations.x)},
                 options.padding, at);
  }
  return op("Conv2D", {x, filter}, attrs_of(options), at);
}
Output depthwise_conv2d(Output x, Output filter, const ConvolutionOptions& options, Location at) {
  return op("DepthwiseConv2dNative", {x, filter}, attrs_of(options), at);
}
Output conv2d_transpose(Output x, Output filter, const Dims& dims,
                        const ConvolutionOptions& options, Location at) {
  return op("Conv2DBackpropInput", {dims.in(graph_of(x, at), at), filter, x}, attrs_of(options),
            at);
}
Output max_pool(Output x, const PoolOptions& options, Location at) {
  return pool("MaxPool", x, options, at);
}
Output avg_pool(Output x, const PoolOptions& options, Location at) {
  return pool("AvgPool", x, options, at);
}
Output bias_add(Output x, Output bias, Location at) { return op("BiasAdd", {x, bias}, {}, at); }

Output softmax_cross_entropy(Output logits, Output labels, Location at) {
  graph_of(labels, at);
  graph_of(logits, at);
  const bool are_classes = is_integer(labels.dtype());
  const auto of_rows = [&](Output x, Output y) {
    return op(are_classes ? "SparseSoftmaxCrossEntropyWithLogits" : "SoftmaxCrossEntropyWithLogits",
              {x, y}, {}, at);
  };
  const Shape& shape = logits.shape();
  if (!shape.has_rank() || shape.rank() <= 2) return of_rows(logits, labels);
  const int64_t classes = shape[shape.rank() - 1];
  check(classes != any, "softmax_cross_entropy (", at,
        "): the number of classes must be known, got ", logits.name(), " ", shape);
  const Output rows =
      of_rows(reshape(logits, {-1, classes}, at),
              are_classes ? reshape(labels, {-1}, at) : reshape(labels, {-1, classes}, at));
  const Output leading = shape_of(logits, i32, at)[slice(0, -1)];
  return reshape(rows, leading, at);
}
Output sigmoid_cross_entropy(Output logits, Output labels, Location at) {
  // max(x, 0) - x z + log(1 + exp(-|x|)). With -|x| as x - 2 max(x, 0) the slope is right at x = 0,
  // too, whatever that of max(x, 0) is there.
  const Operand x(logits, at), positive(relu(logits, at), at);
  const Output minus_abs = x - Operand(positive * 2, at);
  return Operand(positive - Operand(x * Operand(labels, at), at), at) +
         Operand(log1p(exp(minus_abs, at), at), at);
}
Output in_top_k(Output predictions, Output targets, const Operand& k, Location at) {
  return op("InTopKV2", {predictions, targets, k.as(graph_of(predictions, at), targets.dtype())},
            {}, at);
}

}  // namespace leat
