// Conv2D, Conv3D and DepthwiseConv2dNative with their gradients: schemas, shapes, attributes.
// convolution.h has the arithmetic.
#include <algorithm>

#include "graph/gradient.h"
#include "graph/ops.h"
#include "graph/shape_inference.h"
#include "kernels/cpu.h"
#include "kernels/examples.h"
#include "kernels/extents.h"
#include "kernels/neural/convolution.h"
#include "kernels/window.h"

namespace leat {
namespace {

// As in TensorFlow, a filter without elements is valid if there is nothing to compute: no images or
// no results. DepthwiseConv2dNative always accepts it, Conv3D never does.
void check_filter(const Convolution& c, const Shape& x, const Shape& filter, bool has_planes) {
  const auto dims = filter.dims();
  const auto is_zero = [](int64_t extent) { return extent == 0; };
  if (std::none_of(dims.begin(), dims.end(), is_zero)) return;
  const int64_t of_out[] = {c.batch, c.height.out, c.width.out, c.out_channels};
  const bool is_idle = std::any_of(std::begin(of_out), std::end(of_out), is_zero) ||
                       std::any_of(x.dims().begin(), x.dims().end(), is_zero);
  check(!has_planes && (is_idle || !x.is_complete()),
        "filter must not have zero elements, got shape ", filter);
}

// All that follows from shapes and attributes. `x` and `filter` have rank 4, those of Conv3D 5.
Convolution convolution_of(const NodeView& node, const Shape& x, const Shape& filter) {
  const ImageAxes axes = image_axes(node);
  const bool depthwise = node.op.starts_with("Depthwise");
  const int kx = axes.rank() - 3;  // the filter ends with [kx, depth, filters]
  const int64_t depth = filter[kx + 1], filters = filter[kx + 2];
  Convolution c{.batch = x[axes.batch],
                .in_channels = x[axes.channels],
                .out_channels = filters,
                .height = window_along(node, axes.height, x[axes.height], filter[kx - 1]),
                .width = window_along(node, axes.width, x[axes.width], filter[kx]),
                .channels_first = axes.channels_first()};
  if (axes.has_planes()) c.planes = window_along(node, axes.planes, x[axes.planes], filter[0]);
  if (!depthwise) check_filter(c, x, filter, axes.has_planes());
  if (depthwise) {
    check(c.in_channels == any || depth == any || c.in_channels == depth,
          "input and filter must have the same depth: ", c.in_channels, " vs ", depth, " (input ",
          x, ", filter ", filter, ")");
    c.in_channels = c.in_channels == any ? depth : c.in_channels;
    c.groups = c.in_channels;
    c.out_channels =
        c.in_channels == any || filters == any ? any : product_of_extents(c.in_channels, filters);
  } else if (c.in_channels != any && depth != any) {
    check(depth > 0 && c.in_channels % depth == 0, "Depth of input (", c.in_channels,
          ") is not a multiple of input depth of filter (", depth, "): input ", x, ", filter ",
          filter);
    c.groups = c.in_channels / depth;
    check(c.groups > 0 && (filters == any || filters % c.groups == 0), "Depth of output (", filters,
          ") is not a multiple of the number of groups (", c.groups, "): input ", x, ", filter ",
          filter);
  }
  return c;
}

Shape image_shape(const NodeView& node, int64_t batch, int64_t planes, int64_t height,
                  int64_t width, int64_t channels) {
  const ImageAxes axes = image_axes(node);
  Shape out = Shape::of_rank(axes.rank());
  out.set(axes.batch, batch);
  if (axes.has_planes()) out.set(axes.planes, planes);
  out.set(axes.height, height);
  out.set(axes.width, width);
  out.set(axes.channels, channels);
  return out;
}

Shape output_shape(const NodeView& node, const Convolution& c) {
  return image_shape(node, c.batch, c.planes.out, c.height.out, c.width.out, c.out_channels);
}

// input_sizes has the extents of the whole image, or only its height and width; then the rest
// follows from the other inputs.
Shape whole_input_shape(const NodeView& node, const Shape& sizes, const Shape& filter,
                        const Shape& dy) {
  const ImageAxes axes = image_axes(node);
  if (sizes.rank() == 2 && !axes.has_planes())
    return image_shape(node, dy[axes.batch], 1, sizes[0], sizes[1], filter[2]);
  check(sizes.rank() == axes.rank(), "input_sizes must have ", axes.rank(),
        " elements (or 2 for images), got ", sizes.rank());
  return sizes;
}

void check_gradient_shape(const NodeView& node, const Convolution& c, const Shape& dy) {
  const Shape expected = output_shape(node, c);
  check(expected.is_compatible(dy), node.op, ": out_backprop has shape ", dy,
        ", but the convolution's output has shape ", expected);
}

void infer(ShapeContext& c) {
  const int rank = image_axes(c.node()).rank();
  const Shape x = c.with_rank(0, rank), filter = c.with_rank(1, rank);
  c.set_output(0, output_shape(c.node(), convolution_of(c.node(), x, filter)));
}

void infer_input_gradient(ShapeContext& c) {
  const int rank = image_axes(c.node()).rank();
  const Shape filter = c.with_rank(1, rank), dy = c.with_rank(2, rank);
  const Shape sizes = c.shape_from_value(0);
  if (!sizes.has_rank()) return c.set_output(0, Shape::of_rank(rank));
  const Shape x = whole_input_shape(c.node(), sizes, filter, dy);
  check_gradient_shape(c.node(), convolution_of(c.node(), x, filter), dy);
  c.set_output(0, x);
}

void infer_filter_gradient(ShapeContext& c) {
  const int rank = image_axes(c.node()).rank();
  const Shape x = c.with_rank(0, rank), dy = c.with_rank(2, rank);
  const Shape filter = c.shape_from_value(1);
  if (!filter.has_rank()) return c.set_output(0, Shape::of_rank(rank));
  check(filter.rank() == rank, "filter_sizes must have ", rank, " elements, got ", filter.rank());
  if (filter.elements() == 0) return c.set_output(0, filter);
  check_gradient_shape(c.node(), convolution_of(c.node(), x, filter), dy);
  c.set_output(0, filter);
}

template <ConvolutionPass pass>
BoundKernel prepare(const KernelRequest& r) {
  const ConvolutionRequest c = convolution_request(pass, r);
  if (c.is_idle) return {};
  return bind_convolution(pass, c.extents, r.outputs[0].dtype, c.a, c.b);
}

template <ConvolutionPass pass, class... T>
Kernel kernel(Types<T...>) {
  return {.types = {{"T", {dtype_of<T>...}}}, .prepare = prepare<pass>};
}

using ConvolutionTypes = Types<float, double, half, bfloat16>;
using ConvolutionAndIntTypes = Types<float, double, half, bfloat16, int32_t>;

// ---- Gradients: each of the three ops is linear in two operands, and its gradients are the other
// two ops.

// The op itself has no suffix, its gradients are BackpropInput and BackpropFilter.
std::string relative(Gradient& g, const std::string& suffix) {
  const std::string& name = g.node().op->name;
  if (name.starts_with("Conv3D")) return "Conv3D" + suffix + (suffix.empty() ? "" : "V2");
  return (name.starts_with("Depthwise") ? "DepthwiseConv2dNative" : "Conv2D") + suffix;
}
Output convolution(Gradient& g, Output x, Output filter) {
  return op(relative(g, ""), {x, filter}, window_attrs(g));
}
Output input_gradient(Gradient& g, Output sizes, Output filter, Output dy) {
  return op(relative(g, "BackpropInput"), {sizes, filter, dy}, window_attrs(g));
}
Output filter_gradient(Gradient& g, Output x, Output sizes, Output dy) {
  return op(relative(g, "BackpropFilter"), {x, sizes, dy}, window_attrs(g));
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

std::vector<std::string> volume_attrs(const char* more = nullptr) {
  std::vector<std::string> out = {types, "strides: list(int) >= 5", "padding: {'SAME', 'VALID'}",
                                  "data_format: {'NDHWC', 'NCDHW'} = 'NDHWC'",
                                  "dilations: list(int) = [1, 1, 1, 1, 1]"};
  if (more != nullptr) out.push_back(more);
  return out;
}

AttrMap volume_steps(int64_t stride, const char* padding) {
  return {{"strides", std::vector<int64_t>{1, stride, 1, stride, 1}}, {"padding", padding}};
}

const Op conv3d_op{{
    .name = "Conv3D",
    .doc = "Conv2D of volumes [batch, planes, height, width, channels] with a filter [planes, "
           "height, width, channels, filters].",
    .inputs = {"input: T", "filter: T"},
    .outputs = {"output: T"},
    .attrs = volume_attrs(),
    .shape = infer,
    .gradient = gradient,
    .kernels = {kernel<ConvolutionPass::forward>(ConvolutionTypes{})},
    .examples = {{.inputs = {floats({1, 2, 1, 3, 1}, {1, 2, 3, 4, 5, 6}),
                             floats({2, 1, 2, 1, 1}, {1, 10, 100, 1000})},
                  .attrs = volume_steps(1, "VALID"),
                  .outputs = {floats({1, 1, 1, 2, 1}, {5421, 6532})}}},
}};

const Op volume_input_gradient_op{{
    .name = "Conv3DBackpropInputV2",
    .doc = "output = d(sum(Conv3D(input, filter) * out_backprop)) / d(input), of the shape "
           "input_sizes.",
    .inputs = {"input_sizes: Tshape", "filter: T", "out_backprop: T"},
    .outputs = {"output: T"},
    .attrs = volume_attrs("Tshape: {int32, int64} = int32"),
    .shape = infer_input_gradient,
    .gradient = gradient_of_input_gradient,
    .kernels = {kernel<ConvolutionPass::input_gradient>(ConvolutionTypes{})},
    .examples = {{.inputs = {ints({1, 2, 1, 3, 1}), floats({2, 1, 2, 1, 1}, {1, 10, 100, 1000}),
                             floats({1, 1, 1, 2, 1}, {1, 2})},
                  .attrs = volume_steps(1, "VALID"),
                  .outputs = {floats({1, 2, 1, 3, 1}, {1, 12, 20, 100, 1200, 2000})}}},
    .value_inputs = {0},
}};

const Op volume_filter_gradient_op{{
    .name = "Conv3DBackpropFilterV2",
    .doc = "output = d(sum(Conv3D(input, filter) * out_backprop)) / d(filter), of the shape "
           "filter_sizes.",
    .inputs = {"input: T", "filter_sizes: int32", "out_backprop: T"},
    .outputs = {"output: T"},
    .attrs = volume_attrs(),
    .shape = infer_filter_gradient,
    .gradient = gradient_of_filter_gradient,
    .kernels = {kernel<ConvolutionPass::filter_gradient>(ConvolutionTypes{})},
    .examples = {{.inputs = {floats({1, 2, 1, 3, 1}, {1, 2, 3, 4, 5, 6}), ints({2, 1, 2, 1, 1}),
                             floats({1, 1, 1, 2, 1}, {1, 10})},
                  .attrs = volume_steps(1, "VALID"),
                  .outputs = {floats({2, 1, 2, 1, 1}, {21, 32, 54, 65})}}},
    .value_inputs = {1},
}};

}  // namespace

ConvolutionRequest convolution_request(ConvolutionPass pass, const KernelRequest& request) {
  for (const char* attr : {"strides", "dilations"}) check_spatial_steps(request.node, attr);
  const bool gives_x = pass == ConvolutionPass::input_gradient;
  const bool gives_filter = pass == ConvolutionPass::filter_gradient;
  const Shape& x = gives_x ? request.outputs[0].shape : request.inputs[0].shape;
  const Shape& filter = gives_filter ? request.outputs[0].shape : request.inputs[1].shape;
  if (gives_filter && filter.elements() == 0) return {.is_idle = true};
  return {convolution_of(request.node, x, filter), gives_x ? 2 : 0, gives_filter ? 2 : 1, false};
}

}  // namespace leat
