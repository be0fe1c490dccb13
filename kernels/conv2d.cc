// Conv2D and DepthwiseConv2dNative with their gradients: schemas, shapes, attributes. convolution.h
// has the arithmetic.
#include "graph/gradient.h"
#include "graph/ops.h"
#include "graph/shape_inference.h"
#include "kernels/convolution.h"
#include "kernels/cpu.h"
#include "kernels/examples.h"

namespace leat {
namespace {

// All that shapes and attributes say. `x` and `filter` have rank 4.
Convolution convolution_of(const NodeView& node, const Shape& x, const Shape& filter) {
  const ImageAxes axes = image_axes(node);
  const bool depthwise = node.op.starts_with("Depthwise");
  Convolution c{.batch = x[axes.batch],
                .in_channels = x[axes.channels],
                .out_channels = filter[3],
                .height = window_along(node, axes.height, x[axes.height], filter[0]),
                .width = window_along(node, axes.width, x[axes.width], filter[1]),
                .channels_first = axes.channels_first()};
  const int64_t depth = filter[2];
  for (int64_t extent : filter.dims()) {
    check(extent != 0, "filter must not have zero elements, got shape ", filter);
  }
  if (depthwise) {
    check(c.in_channels == any || depth == any || c.in_channels == depth,
          "input and filter must have the same depth: ", c.in_channels, " vs ", depth, " (input ",
          x, ", filter ", filter, ")");
    c.in_channels = c.in_channels == any ? depth : c.in_channels;
    c.groups = c.in_channels;
    c.out_channels = c.in_channels == any || filter[3] == any ? any : c.in_channels * filter[3];
  } else if (c.in_channels != any && depth != any) {
    check(depth > 0 && c.in_channels % depth == 0, "Depth of input (", c.in_channels,
          ") is not a multiple of input depth of filter (", depth, "): input ", x, ", filter ",
          filter);
    c.groups = c.in_channels / depth;
    check(c.groups > 0 && (filter[3] == any || filter[3] % c.groups == 0), "Depth of output (",
          filter[3], ") is not a multiple of the number of groups (", c.groups, "): input ", x,
          ", filter ", filter);
  }
  return c;
}

Shape image_shape(const NodeView& node, int64_t batch, int64_t height, int64_t width,
                  int64_t channels) {
  return image_axes(node).channels_first() ? Shape{batch, channels, height, width}
                                           : Shape{batch, height, width, channels};
}

Shape output_shape(const NodeView& node, const Convolution& c) {
  return image_shape(node, c.batch, c.height.out, c.width.out, c.out_channels);
}

// input_sizes: of the whole image, or of its height and width; then the rest follows from the other
// inputs.
Shape whole_input_shape(const NodeView& node, const Shape& sizes, const Shape& filter,
                        const Shape& dy) {
  if (sizes.rank() != 2) {
    check(sizes.rank() == 4, "input_sizes must have 4 (or 2) elements, got ", sizes.rank());
    return sizes;
  }
  const ImageAxes axes = image_axes(node);
  return image_shape(node, dy[axes.batch], sizes[0], sizes[1], filter[2]);
}

void check_gradient_shape(const NodeView& node, const Convolution& c, const Shape& dy) {
  const Shape expected = output_shape(node, c);
  check(expected.is_compatible(dy), node.op, ": out_backprop has shape ", dy,
        ", but the convolution's output has shape ", expected);
}

void infer(ShapeContext& c) {
  const Shape x = c.with_rank(0, 4), filter = c.with_rank(1, 4);
  c.set_output(0, output_shape(c.node(), convolution_of(c.node(), x, filter)));
}

void infer_input_gradient(ShapeContext& c) {
  const Shape filter = c.with_rank(1, 4), dy = c.with_rank(2, 4);
  const Shape sizes = c.shape_from_value(0);
  if (!sizes.has_rank()) return c.set_output(0, Shape::of_rank(4));
  const Shape x = whole_input_shape(c.node(), sizes, filter, dy);
  check_gradient_shape(c.node(), convolution_of(c.node(), x, filter), dy);
  c.set_output(0, x);
}

void infer_filter_gradient(ShapeContext& c) {
  const Shape x = c.with_rank(0, 4), dy = c.with_rank(2, 4);
  const Shape filter = c.shape_from_value(1);
  if (!filter.has_rank()) return c.set_output(0, Shape::of_rank(4));
  check(filter.rank() == 4, "filter_sizes must have 4 elements, got ", filter.rank());
  check_gradient_shape(c.node(), convolution_of(c.node(), x, filter), dy);
  c.set_output(0, filter);
}

template <ConvolutionPass pass>
BoundKernel prepare(const KernelRequest& r) {
  for (const char* attr : {"strides", "dilations"}) check_spatial_steps(r.node, attr);
  const Shape& x = pass == ConvolutionPass::input_gradient ? r.outputs[0].shape : r.inputs[0].shape;
  const Shape& filter =
      pass == ConvolutionPass::filter_gradient ? r.outputs[0].shape : r.inputs[1].shape;
  const Convolution c = convolution_of(r.node, x, filter);
  const int a = pass == ConvolutionPass::input_gradient ? 2 : 0,
            b = pass == ConvolutionPass::filter_gradient ? 2 : 1;
  return bind_convolution(pass, c, r.outputs[0].dtype, a, b);
}

template <ConvolutionPass pass, class... T>
Kernel kernel(Types<T...>) {
  return {.types = {{"T", {dtype_of<T>...}}}, .prepare = prepare<pass>};
}

using ConvolutionTypes = Types<float, double, half, bfloat16>;
using ConvolutionAndIntTypes = Types<float, double, half, bfloat16, int32_t>;

// ---- Gradients: each of the three ops is linear in two operands, and its gradients are the other
// two ops.

AttrMap attrs_of(Gradient& g) {
  AttrMap attrs;
  for (const char* name : {"strides", "padding", "explicit_paddings", "data_format", "dilations"}) {
    attrs[name] = g.node().attrs.at(name);
  }
  return attrs;
}

std::string family(Gradient& g) {
  return g.node().op->name.starts_with("Depthwise") ? "DepthwiseConv2dNative" : "Conv2D";
}
Output convolution(Gradient& g, Output x, Output filter) {
  return op(family(g), {x, filter}, attrs_of(g));
}
Output input_gradient(Gradient& g, Output sizes, Output filter, Output dy) {
  return op(family(g) + "BackpropInput", {sizes, filter, dy}, attrs_of(g));
}
Output filter_gradient(Gradient& g, Output x, Output sizes, Output dy) {
  return op(family(g) + "BackpropFilter", {x, sizes, dy}, attrs_of(g));
}

void gradient(Gradient& g) {
  g.dx(0) = input_gradient(g, shape_of(g.x(0)), g.x(1), g.dy());
  g.dx(1) = filter_gradient(g, g.x(0), shape_of(g.x(1)), g.dy());
}
void gradient_of_input_gradient(Gradient& g) {
  g.dx(1) = filter_gradient(g, g.dy(), shape_of(g.x(1)), g.x(2));
  g.dx(2) = convolution(g, g.dy(), g.x(1));
}
void gradient_of_filter_gradient(Gradient& g) {
  g.dx(0) = input_gradient(g, shape_of(g.x(0)), g.dy(), g.x(2));
  g.dx(2) = convolution(g, g.x(0), g.dy());
}

// ---- The ops

std::vector<std::string> attrs(std::string types, bool has_cudnn) {
  std::vector<std::string> out = {std::move(types),
                                  "strides: list(int)",
                                  "padding: {'SAME', 'VALID', 'EXPLICIT'}",
                                  "explicit_paddings: list(int) = []",
                                  "data_format: {'NHWC', 'NCHW'} = 'NHWC'",
                                  "dilations: list(int) = [1, 1, 1, 1]"};
  if (has_cudnn) out.push_back("use_cudnn_on_gpu: bool = true");
  return out;
}

const char* const types = "T: {half, bfloat16, float, double}";
const char* const types_and_int = "T: {half, bfloat16, float, double, int32}";

AttrMap steps(int64_t stride, const char* padding) {
  return {{"strides", std::vector<int64_t>{1, stride, stride, 1}}, {"padding", padding}};
}

const Op conv2d_op{{
    .name = "Conv2D",
    .doc = "output[n, y, x, o] = sum over (i, j, c) of input[n, y * stride + i * dilation - pad, "
           "x * stride + j * dilation - pad, c] * filter[i, j, c, o]. A filter of fewer channels "
           "than the input's makes "
           "groups.",
    .inputs = {"input: T", "filter: T"},
    .outputs = {"output: T"},
    .attrs = attrs(types_and_int, true),
    .shape = infer,
    .gradient = gradient,
    .kernels = {kernel<ConvolutionPass::forward>(ConvolutionAndIntTypes{})},
    .examples = {{.inputs = {floats({1, 2, 3, 1}, {1, 2, 3, 4, 5, 6}),
                             floats({2, 2, 1, 1}, {1, 10, 100, 1000})},
                  .attrs = steps(1, "VALID"),
                  .outputs = {floats({1, 1, 2, 1}, {5421, 6532})}},
                 {.inputs = {floats({1, 2, 3, 1}, {1, 2, 3, 4, 5, 6}),
                             floats({2, 2, 1, 1}, {1, 10, 100, 1000})},
                  .attrs = steps(2, "SAME"),
                  .outputs = {floats({1, 1, 2, 1}, {5421, 603})}}},
}};

const Op input_gradient_op{{
    .name = "Conv2DBackpropInput",
    .doc = "output = d(sum(Conv2D(input, filter) * out_backprop)) / d(input), of the shape "
           "input_sizes.",
    .inputs = {"input_sizes: int32", "filter: T", "out_backprop: T"},
    .outputs = {"output: T"},
    .attrs = attrs(types_and_int, true),
    .shape = infer_input_gradient,
    .gradient = gradient_of_input_gradient,
    .kernels = {kernel<ConvolutionPass::input_gradient>(ConvolutionAndIntTypes{})},
    .examples = {{.inputs = {ints({1, 2, 3, 1}), floats({2, 2, 1, 1}, {1, 10, 100, 1000}),
                             floats({1, 1, 2, 1}, {1, 2})},
                  .attrs = steps(1, "VALID"),
                  .outputs = {floats({1, 2, 3, 1}, {1, 12, 20, 100, 1200, 2000})}}},
    .value_inputs = {0},
}};

const Op filter_gradient_op{{
    .name = "Conv2DBackpropFilter",
    .doc = "output = d(sum(Conv2D(input, filter) * out_backprop)) / d(filter), of the shape "
           "filter_sizes.",
    .inputs = {"input: T", "filter_sizes: int32", "out_backprop: T"},
    .outputs = {"output: T"},
    .attrs = attrs(types, true),
    .shape = infer_filter_gradient,
    .gradient = gradient_of_filter_gradient,
    .kernels = {kernel<ConvolutionPass::filter_gradient>(ConvolutionTypes{})},
    .examples = {{.inputs = {floats({1, 2, 3, 1}, {1, 2, 3, 4, 5, 6}), ints({2, 2, 1, 1}),
                             floats({1, 1, 2, 1}, {1, 10})},
                  .attrs = steps(1, "VALID"),
                  .outputs = {floats({2, 2, 1, 1}, {21, 32, 54, 65})}}},
    .value_inputs = {1},
}};

const Op depthwise_op{{
    .name = "DepthwiseConv2dNative",
    .doc = "output[n, y, x, c * multiplier + m] = sum over (i, j) of input[n, y * stride + i * "
           "dilation - pad, "
           "x * stride + j * dilation - pad, c] * filter[i, j, c, m].",
    .inputs = {"input: T", "filter: T"},
    .outputs = {"output: T"},
    .attrs = attrs(types, false),
    .shape = infer,
    .gradient = gradient,
    .kernels = {kernel<ConvolutionPass::forward>(ConvolutionTypes{})},
    .examples = {{.inputs = {floats({1, 1, 2, 2}, {1, 2, 3, 4}),
                             floats({1, 2, 2, 1}, {1, 10, 100, 1000})},
                  .attrs = steps(1, "VALID"),
                  .outputs = {floats({1, 1, 1, 2}, {301, 4020})}}},
}};

const Op depthwise_input_gradient_op{{
    .name = "DepthwiseConv2dNativeBackpropInput",
    .doc = "output = d(sum(DepthwiseConv2dNative(input, filter) * out_backprop)) / d(input), of "
           "the shape input_sizes.",
    .inputs = {"input_sizes: int32", "filter: T", "out_backprop: T"},
    .outputs = {"output: T"},
    .attrs = attrs(types, false),
    .shape = infer_input_gradient,
    .gradient = gradient_of_input_gradient,
    .kernels = {kernel<ConvolutionPass::input_gradient>(ConvolutionTypes{})},
    .examples = {{.inputs = {ints({1, 1, 2, 2}), floats({1, 2, 2, 1}, {1, 10, 100, 1000}),
                             floats({1, 1, 1, 2}, {1, 2})},
                  .attrs = steps(1, "VALID"),
                  .outputs = {floats({1, 1, 2, 2}, {1, 20, 100, 2000})}}},
    .value_inputs = {0},
}};

const Op depthwise_filter_gradient_op{{
    .name = "DepthwiseConv2dNativeBackpropFilter",
    .doc = "output = d(sum(DepthwiseConv2dNative(input, filter) * out_backprop)) / d(filter), of "
           "the shape "
           "filter_sizes.",
    .inputs = {"input: T", "filter_sizes: int32", "out_backprop: T"},
    .outputs = {"output: T"},
    .attrs = attrs(types, false),
    .shape = infer_filter_gradient,
    .gradient = gradient_of_filter_gradient,
    .kernels = {kernel<ConvolutionPass::filter_gradient>(ConvolutionTypes{})},
    .examples = {{.inputs = {floats({1, 1, 2, 2}, {1, 2, 3, 4}), ints({1, 2, 2, 1}),
                             floats({1, 1, 1, 2}, {1, 10})},
                  .attrs = steps(1, "VALID"),
                  .outputs = {floats({1, 2, 2, 1}, {1, 20, 3, 40})}}},
    .value_inputs = {1},
}};

}  // namespace
}  // namespace leat
