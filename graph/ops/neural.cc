#include "graph/ops/neural.h"

#include <cmath>

#include "graph/ops/graph_of.h"
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

Output pool(std::string_view name, Output x, const PoolOptions& options, Location at) {
  const Extents2d strides{options.strides.y == 0 ? options.size.y : options.strides.y,
                          options.strides.x == 0 ? options.size.x : options.strides.x};
  AttrMap attrs = {{"ksize", of_images(options.size)},
                   {"strides", of_images(strides)},
                   {"padding", options.padding.name()}};
  if (!options.padding.widths().empty())
    attrs.emplace("explicit_paddings", options.padding.widths());
  return op(name, {x}, std::move(attrs), at);
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
Output softmax(Output logits, Location at) { return op("Softmax", {logits}, {}, at); }
Output log_softmax(Output logits, Location at) { return op("LogSoftmax", {logits}, {}, at); }

Output conv2d(Output x, Output filter, const ConvolutionOptions& options, Location at) {
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
  return op(is_integer(labels.dtype()) ? "SparseSoftmaxCrossEntropyWithLogits"
                                       : "SoftmaxCrossEntropyWithLogits",
            {logits, labels}, {}, at);
}
Output sigmoid_cross_entropy(Output logits, Output labels, Location at) {
  // max(x, 0) - x z + log(1 + exp(-|x|))
  const Operand x(logits, at);
  const Output tail = log1p(exp(-Operand(abs(logits, at), at), at), at);
  return Operand(Operand(relu(logits, at), at) - Operand(x * Operand(labels, at), at), at) +
         Operand(tail, at);
}
Output in_top_k(Output predictions, Output targets, const Operand& k, Location at) {
  return op("InTopKV2", {predictions, targets, k.as(graph_of(predictions, at), targets.dtype())},
            {}, at);
}

}  // namespace leat
