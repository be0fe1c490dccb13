// The catalogue: one line per op, the builder functions of C++ programs, gradients and passes.
//   auto y = relu(matmul(x, w) + b);
#pragma once

#include <array>
#include <concepts>
#include <initializer_list>
#include <span>
#include <string>
#include <type_traits>
#include <variant>
#include <vector>

#include "graph/graph.h"

namespace leat {

// An argument of a builder function: an Output, or a number that becomes a constant of the other
// operand's dtype. It remembers the line where it was converted, so that `a + b` can report it.
class Operand {
 public:
  Operand(Output output, Location at = here()) : output_(output), at_(at) {}  // NOLINT: converts
  template <std::floating_point T>
  Operand(T number, Location at = here())  // NOLINT
      : number_(static_cast<double>(number)), at_(at) {}
  template <std::signed_integral T>
  Operand(T number, Location at = here()) : number_(int64_t{number}), at_(at) {}  // NOLINT
  template <std::unsigned_integral T>
  Operand(T number, Location at = here()) : number_(uint64_t{number}), at_(at) {}  // NOLINT
  Location at() const { return at_; }
  bool is_number() const { return number_.index() != 0; }
  Output output() const { return output_; }
  Output as(const Operand& other) const;  // a number becomes a constant like `other`

 private:
  Output output_;
  std::variant<std::monostate, double, int64_t, uint64_t> number_;  // integers are kept exact
  Location at_;
};

// Any op by name: op("Relu", {x}). Attributes that follow from the inputs may be left out. The
// first output.
Output op(std::string_view name, const std::vector<Output>& inputs, AttrMap attrs = {},
          Location at = here());
Node& op_node(Graph& graph, std::string_view name, const std::vector<Output>& inputs,
              AttrMap attrs = {}, Location at = here());
// All outputs of an op that has inputs.
std::vector<Output> op_outputs(std::string_view name, const std::vector<Output>& inputs,
                               AttrMap attrs = {}, Location at = here());

// Elementwise, with numpy broadcasting: x * 2 + y. Division of integers truncates, as in C++ (op
// Div).
Output operator+(const Operand& a, const Operand& b);
Output operator-(const Operand& a, const Operand& b);
Output operator*(const Operand& a, const Operand& b);
Output operator/(const Operand& a, const Operand& b);
Output operator-(const Operand& x);

// clang-format off
// ---- sources ----
Output constant(Graph& graph, Tensor value, std::string_view name = "Const", Location at = here());
Output placeholder(Graph& graph, std::string_view name, DType dtype, const Shape& shape = Shape::unknown(), Location at = here());

// ---- values passed on ----
inline Output identity(Output x, Location at = here()) { return op("Identity", {x}, {}, at); }
inline std::vector<Output> identity_n(const std::vector<Output>& x, Location at = here()) { return op_outputs("IdentityN", x, {}, at); }
inline Output stop_gradient(Output x, Location at = here()) { return op("StopGradient", {x}, {}, at); }
inline Output prevent_gradient(Output x, std::string_view message, Location at = here()) { return op("PreventGradient", {x}, {{"message", message}}, at); }
inline Output check_numerics(Output x, std::string_view message, Location at = here()) { return op("CheckNumerics", {x}, {{"message", message}}, at); }
inline Output placeholder_with_default(Output x, const Shape& shape, Location at = here()) { return op("PlaceholderWithDefault", {x}, {{"shape", shape}}, at); }
// Inputs of any types: the condition, then what the error shows.
inline Node& assert_that(Output condition, std::vector<Output> data, Location at = here()) { data.insert(data.begin(), condition); return op_node(condition.graph(), "Assert", data, {}, at); }
inline Node& no_op(Graph& graph, std::string_view name = "NoOp", Location at = here()) { return graph.add({.op = "NoOp", .name = std::string(name), .location = at}); }

// ---- elementwise; operands are broadcast, and may be numbers: 1 - x ----
inline Output add(Operand x, Operand y) { return op("AddV2", {x.as(y), y.as(x)}, {}, x.at()); }
inline Output sub(Operand x, Operand y) { return op("Sub", {x.as(y), y.as(x)}, {}, x.at()); }
inline Output mul(Operand x, Operand y) { return op("Mul", {x.as(y), y.as(x)}, {}, x.at()); }
inline Output div(Operand x, Operand y) { return op("RealDiv", {x.as(y), y.as(x)}, {}, x.at()); }
inline Output div_no_nan(Operand x, Operand y) { return op("DivNoNan", {x.as(y), y.as(x)}, {}, x.at()); }
inline Output floor_div(Operand x, Operand y) { return op("FloorDiv", {x.as(y), y.as(x)}, {}, x.at()); }
inline Output floor_mod(Operand x, Operand y) { return op("FloorMod", {x.as(y), y.as(x)}, {}, x.at()); }
inline Output maximum(Operand x, Operand y) { return op("Maximum", {x.as(y), y.as(x)}, {}, x.at()); }
inline Output minimum(Operand x, Operand y) { return op("Minimum", {x.as(y), y.as(x)}, {}, x.at()); }
inline Output pow(Operand x, Operand y) { return op("Pow", {x.as(y), y.as(x)}, {}, x.at()); }
inline Output squared_difference(Operand x, Operand y) { return op("SquaredDifference", {x.as(y), y.as(x)}, {}, x.at()); }
inline Output equal(Operand x, Operand y) { return op("Equal", {x.as(y), y.as(x)}, {}, x.at()); }
inline Output not_equal(Operand x, Operand y) { return op("NotEqual", {x.as(y), y.as(x)}, {}, x.at()); }
inline Output less(Operand x, Operand y) { return op("Less", {x.as(y), y.as(x)}, {}, x.at()); }
inline Output less_equal(Operand x, Operand y) { return op("LessEqual", {x.as(y), y.as(x)}, {}, x.at()); }
inline Output greater(Operand x, Operand y) { return op("Greater", {x.as(y), y.as(x)}, {}, x.at()); }
inline Output greater_equal(Operand x, Operand y) { return op("GreaterEqual", {x.as(y), y.as(x)}, {}, x.at()); }
inline Output neg(Output x, Location at = here()) { return op("Neg", {x}, {}, at); }
inline Output abs(Output x, Location at = here()) { return op("Abs", {x}, {}, at); }
inline Output sign(Output x, Location at = here()) { return op("Sign", {x}, {}, at); }
inline Output conj(Output x, Location at = here()) { return is_complex(x.dtype()) ? op("Conj", {x}, {}, at) : x; }
inline Output real(Output x, Location at = here()) { return op("Real", {x}, {{"Tout", x.dtype() == DType::complex128 ? f64 : f32}}, at); }
inline Output imaginary(Output x, Location at = here()) { return op("Imag", {x}, {{"Tout", x.dtype() == DType::complex128 ? f64 : f32}}, at); }
inline Output complex(Output re, Output im, Location at = here()) { return op("Complex", {re, im}, {{"Tout", re.dtype() == f64 ? DType::complex128 : DType::complex64}}, at); }
inline Output square(Output x, Location at = here()) { return op("Square", {x}, {}, at); }
inline Output sqrt(Output x, Location at = here()) { return op("Sqrt", {x}, {}, at); }
inline Output rsqrt(Output x, Location at = here()) { return op("Rsqrt", {x}, {}, at); }
inline Output reciprocal(Output x, Location at = here()) { return op("Reciprocal", {x}, {}, at); }
inline Output exp(Output x, Location at = here()) { return op("Exp", {x}, {}, at); }
inline Output log(Output x, Location at = here()) { return op("Log", {x}, {}, at); }
inline Output floor(Output x, Location at = here()) { return op("Floor", {x}, {}, at); }
inline Output relu(Output x, Location at = here()) { return op("Relu", {x}, {}, at); }
inline Output relu6(Output x, Location at = here()) { return op("Relu6", {x}, {}, at); }
inline Output leaky_relu(Output x, double alpha = 0.2, Location at = here()) { return op("LeakyRelu", {x}, {{"alpha", alpha}}, at); }
inline Output elu(Output x, Location at = here()) { return op("Elu", {x}, {}, at); }
inline Output selu(Output x, Location at = here()) { return op("Selu", {x}, {}, at); }
inline Output softplus(Output x, Location at = here()) { return op("Softplus", {x}, {}, at); }
inline Output sigmoid(Output x, Location at = here()) { return op("Sigmoid", {x}, {}, at); }
inline Output tanh(Output x, Location at = here()) { return op("Tanh", {x}, {}, at); }
inline Output logical_not(Output x, Location at = here()) { return op("LogicalNot", {x}, {}, at); }
inline Output zeros_like(Output x, Location at = here()) { return op("ZerosLike", {x}, {}, at); }
inline Output ones_like(Output x, Location at = here()) { return op("OnesLike", {x}, {}, at); }
inline Output logical_and(Output x, Output y, Location at = here()) { return op("LogicalAnd", {x, y}, {}, at); }
inline Output logical_or(Output x, Output y, Location at = here()) { return op("LogicalOr", {x, y}, {}, at); }
// x where the condition holds, else y.
inline Output select(Output condition, Operand x, Operand y) { return op("SelectV2", {condition, x.as(y), y.as(x)}, {}, x.at()); }
inline Output cast(Output x, DType to, Location at = here()) { return op("Cast", {x}, {{"DstT", to}}, at); }
inline Output add_n(const std::vector<Output>& inputs, Location at = here()) { return op("AddN", inputs, {}, at); }
inline Output relu_grad(Output dy, Output x, Location at = here()) { return op("ReluGrad", {dy, x}, {}, at); }
inline Output sigmoid_grad(Output y, Output dy, Location at = here()) { return op("SigmoidGrad", {y, dy}, {}, at); }
inline Output tanh_grad(Output y, Output dy, Location at = here()) { return op("TanhGrad", {y, dy}, {}, at); }
inline Output sqrt_grad(Output y, Output dy, Location at = here()) { return op("SqrtGrad", {y, dy}, {}, at); }
inline Output rsqrt_grad(Output y, Output dy, Location at = here()) { return op("RsqrtGrad", {y, dy}, {}, at); }
inline Output reciprocal_grad(Output y, Output dy, Location at = here()) { return op("ReciprocalGrad", {y, dy}, {}, at); }
inline Output broadcast_to(Output x, Output shape, Location at = here()) { return op("BroadcastTo", {x, shape}, {}, at); }
inline Output broadcast_gradient_args(Output s0, Output s1, Location at = here()) { return op("BroadcastGradientArgs", {s0, s1}, {}, at); }

// ---- reductions: over all axes, or those given ----
Output all_axes(Output x, Location at = here());  // 0, 1, …, rank - 1
inline Output axes(Output x, const std::vector<int>& list, Location at = here()) { return constant(x.graph(), Tensor::of<int32_t>({static_cast<int64_t>(list.size())}, std::span<const int32_t>(list)), "axes", at); }
inline Output sum(Output x, Output axes, bool keep_dims = false, Location at = here()) { return op("Sum", {x, axes}, {{"keep_dims", keep_dims}}, at); }
inline Output sum(Output x, Location at = here()) { return sum(x, all_axes(x, at), false, at); }
inline Output mean(Output x, Output axes, bool keep_dims = false, Location at = here()) { return op("Mean", {x, axes}, {{"keep_dims", keep_dims}}, at); }
inline Output mean(Output x, Location at = here()) { return mean(x, all_axes(x, at), false, at); }
inline Output prod(Output x, Output axes, bool keep_dims = false, Location at = here()) { return op("Prod", {x, axes}, {{"keep_dims", keep_dims}}, at); }
inline Output prod(Output x, Location at = here()) { return prod(x, all_axes(x, at), false, at); }
inline Output reduce_max(Output x, Output axes, bool keep_dims = false, Location at = here()) { return op("Max", {x, axes}, {{"keep_dims", keep_dims}}, at); }
inline Output reduce_max(Output x, Location at = here()) { return reduce_max(x, all_axes(x, at), false, at); }
inline Output reduce_min(Output x, Output axes, bool keep_dims = false, Location at = here()) { return op("Min", {x, axes}, {{"keep_dims", keep_dims}}, at); }
inline Output reduce_min(Output x, Location at = here()) { return reduce_min(x, all_axes(x, at), false, at); }
inline Output reduce_all(Output x, Output axes, bool keep_dims = false, Location at = here()) { return op("All", {x, axes}, {{"keep_dims", keep_dims}}, at); }
inline Output reduce_all(Output x, Location at = here()) { return reduce_all(x, all_axes(x, at), false, at); }
inline Output reduce_any(Output x, Output axes, bool keep_dims = false, Location at = here()) { return op("Any", {x, axes}, {{"keep_dims", keep_dims}}, at); }
inline Output reduce_any(Output x, Location at = here()) { return reduce_any(x, all_axes(x, at), false, at); }
inline Output arg_max(Output x, int axis, Location at = here()) { return op("ArgMax", {x, constant(x.graph(), Tensor::scalar<int32_t>(axis), "dimension", at)}, {}, at); }
inline Output arg_min(Output x, int axis, Location at = here()) { return op("ArgMin", {x, constant(x.graph(), Tensor::scalar<int32_t>(axis), "dimension", at)}, {}, at); }
inline Output in_top_k(Output predictions, Output targets, Output k, Location at = here()) { return op("InTopKV2", {predictions, targets, k}, {}, at); }
inline Output l2_loss(Output x, Location at = here()) { return op("L2Loss", {x}, {}, at); }
// {values, indices} of the k largest entries of each row.
inline std::vector<Output> top_k(Output x, int k, Location at = here()) { return op_outputs("TopKV2", {x, constant(x.graph(), Tensor::scalar<int32_t>(k), "k", at)}, {}, at); }

// ---- linear algebra, neural networks ----
inline Output matmul(Output a, Output b, bool transpose_a = false, bool transpose_b = false, Location at = here()) { return op("MatMul", {a, b}, {{"transpose_a", transpose_a}, {"transpose_b", transpose_b}}, at); }
inline Output batch_matmul(Output x, Output y, bool adj_x = false, bool adj_y = false, Location at = here()) { return op("BatchMatMulV2", {x, y}, {{"adj_x", adj_x}, {"adj_y", adj_y}}, at); }
inline Output bias_add(Output value, Output bias, std::string_view data_format = "NHWC", Location at = here()) { return op("BiasAdd", {value, bias}, {{"data_format", data_format}}, at); }
inline Output bias_add_grad(Output dy, std::string_view data_format = "NHWC", Location at = here()) { return op("BiasAddGrad", {dy}, {{"data_format", data_format}}, at); }
inline Output softmax(Output logits, Location at = here()) { return op("Softmax", {logits}, {}, at); }
inline Output log_softmax(Output logits, Location at = here()) { return op("LogSoftmax", {logits}, {}, at); }
// Both give the loss of each row (output 0); labels are rows of probabilities, or class numbers.
inline Output softmax_cross_entropy(Output logits, Output labels, Location at = here()) { return op("SoftmaxCrossEntropyWithLogits", {logits, labels}, {}, at); }
inline Output sparse_softmax_cross_entropy(Output logits, Output labels, Location at = here()) { return op("SparseSoftmaxCrossEntropyWithLogits", {logits, labels}, {}, at); }

// ---- images [batch, height, width, channels]; `attrs`: strides and ksize {1, y, x, 1}, padding "SAME" or "VALID", … ----
inline Output conv2d(Output x, Output filter, AttrMap attrs, Location at = here()) { return op("Conv2D", {x, filter}, std::move(attrs), at); }
inline Output depthwise_conv2d(Output x, Output filter, AttrMap attrs, Location at = here()) { return op("DepthwiseConv2dNative", {x, filter}, std::move(attrs), at); }
inline Output max_pool(Output x, AttrMap attrs, Location at = here()) { return op("MaxPool", {x}, std::move(attrs), at); }
inline Output avg_pool(Output x, AttrMap attrs, Location at = here()) { return op("AvgPool", {x}, std::move(attrs), at); }
// {y, mean, variance, …}, see FusedBatchNormV3.
inline std::vector<Output> fused_batch_norm(Output x, Output scale, Output offset, Output mean, Output variance, AttrMap attrs = {}, Location at = here()) { return op_outputs("FusedBatchNormV3", {x, scale, offset, mean, variance}, std::move(attrs), at); }
inline Output local_response_normalization(Output x, AttrMap attrs = {}, Location at = here()) { return op("LRN", {x}, std::move(attrs), at); }

inline Output conv3d(Output x, Output filter, AttrMap attrs, Location at = here()) { return op("Conv3D", {x, filter}, std::move(attrs), at); }
inline Output max_pool3d(Output x, AttrMap attrs, Location at = here()) { return op("MaxPool3D", {x}, std::move(attrs), at); }
inline Output avg_pool3d(Output x, AttrMap attrs, Location at = here()) { return op("AvgPool3D", {x}, std::move(attrs), at); }
inline Output dilation2d(Output x, Output filter, AttrMap attrs, Location at = here()) { return op("Dilation2D", {x, filter}, std::move(attrs), at); }
inline Output space_to_depth(Output x, int64_t block_size, Location at = here()) { return op("SpaceToDepth", {x}, {{"block_size", block_size}}, at); }
inline Output depth_to_space(Output x, int64_t block_size, Location at = here()) { return op("DepthToSpace", {x}, {{"block_size", block_size}}, at); }
inline Output space_to_batch(Output x, Output block_shape, Output paddings, Location at = here()) { return op("SpaceToBatchND", {x, block_shape, paddings}, {}, at); }
inline Output batch_to_space(Output x, Output block_shape, Output crops, Location at = here()) { return op("BatchToSpaceND", {x, block_shape, crops}, {}, at); }
// `size` is [height, width]; `attrs`: align_corners, half_pixel_centers.
inline Output resize_bilinear(Output images, Output size, AttrMap attrs = {}, Location at = here()) { return op("ResizeBilinear", {images, size}, std::move(attrs), at); }
inline Output resize_bicubic(Output images, Output size, AttrMap attrs = {}, Location at = here()) { return op("ResizeBicubic", {images, size}, std::move(attrs), at); }
inline Output resize_nearest_neighbor(Output images, Output size, AttrMap attrs = {}, Location at = here()) { return op("ResizeNearestNeighbor", {images, size}, std::move(attrs), at); }
inline Output crop_and_resize(Output images, Output boxes, Output box_images, Output crop_size, AttrMap attrs = {}, Location at = here()) { return op("CropAndResize", {images, boxes, box_images, crop_size}, std::move(attrs), at); }
inline Output rgb_to_hsv(Output images, Location at = here()) { return op("RGBToHSV", {images}, {}, at); }
inline Output hsv_to_rgb(Output images, Location at = here()) { return op("HSVToRGB", {images}, {}, at); }
inline Output adjust_contrast(Output images, Output factor, Location at = here()) { return op("AdjustContrastv2", {images, factor}, {}, at); }

// ---- shapes ----
inline Output shape_of(Output x, DType out_type = i32, Location at = here()) { return op("Shape", {x}, {{"out_type", out_type}}, at); }
inline std::vector<Output> shape_n(const std::vector<Output>& x, DType out_type = i32, Location at = here()) { return op_outputs("ShapeN", x, {{"out_type", out_type}}, at); }
inline Output size_of(Output x, DType out_type = i32, Location at = here()) { return op("Size", {x}, {{"out_type", out_type}}, at); }
inline Output rank_of(Output x, Location at = here()) { return op("Rank", {x}, {}, at); }
inline Output reshape(Output x, Output shape, Location at = here()) { return op("Reshape", {x, shape}, {}, at); }
inline Output expand_dims(Output x, int axis, Location at = here()) { return op("ExpandDims", {x, constant(x.graph(), Tensor::scalar<int32_t>(axis), "dim", at)}, {}, at); }
inline Output squeeze(Output x, std::vector<int64_t> axes = {}, Location at = here()) { return op("Squeeze", {x}, {{"squeeze_dims", std::move(axes)}}, at); }
inline Output fill(Output dims, Output value, Location at = here()) { return op("Fill", {dims, value}, {}, at); }
inline Output transpose(Output x, Output perm, Location at = here()) { return op("Transpose", {x, perm}, {}, at); }
inline Output invert_permutation(Output x, Location at = here()) { return op("InvertPermutation", {x}, {}, at); }
inline Output pad(Output x, Output paddings, Location at = here()) { return op("Pad", {x, paddings}, {}, at); }
inline Output pad(Output x, Output paddings, Output constant_value, Location at = here()) { return op("PadV2", {x, paddings, constant_value}, {}, at); }
// `mode`: "REFLECT" or "SYMMETRIC".
inline Output mirror_pad(Output x, Output paddings, std::string_view mode, Location at = here()) { return op("MirrorPad", {x, paddings}, {{"mode", mode}}, at); }
inline Output tile(Output x, Output multiples, Location at = here()) { return op("Tile", {x, multiples}, {}, at); }
inline Output concatenate(const std::vector<Output>& values, Output axis, Location at = here()) { std::vector<Output> all = values; all.push_back(axis); return op("ConcatV2", all, {}, at); }
inline Output concatenate(const std::vector<Output>& values, int axis, Location at = here()) { check(!values.empty(), "concatenate (", at, "): there is nothing to concatenate"); return concatenate(values, constant(values[0].graph(), Tensor::scalar<int32_t>(axis), "axis", at), at); }
inline std::vector<Output> concat_offset(Output axis, const std::vector<Output>& shapes, Location at = here()) { std::vector<Output> all = {axis}; all.insert(all.end(), shapes.begin(), shapes.end()); return op_outputs("ConcatOffset", all, {}, at); }
inline std::vector<Output> split(Output x, int num_split, int axis, Location at = here()) { return op_outputs("Split", {constant(x.graph(), Tensor::scalar<int32_t>(axis), "split_dim", at), x}, {{"num_split", num_split}}, at); }
// Parts of the given sizes, one of which may be -1: the rest.
inline std::vector<Output> split_v(Output x, const std::vector<int64_t>& sizes, int axis, Location at = here()) { return op_outputs("SplitV", {x, constant(x.graph(), Tensor::of<int64_t>({static_cast<int64_t>(sizes.size())}, std::span<const int64_t>(sizes)), "size_splits", at), constant(x.graph(), Tensor::scalar<int32_t>(axis), "split_dim", at)}, {{"num_split", static_cast<int64_t>(sizes.size())}}, at); }
inline Output reverse(Output x, const std::vector<int>& list, Location at = here()) { return op("ReverseV2", {x, axes(x, list, at)}, {}, at); }
inline Output pack(const std::vector<Output>& values, int64_t axis = 0, Location at = here()) { return op("Pack", values, {{"axis", axis}}, at); }
inline std::vector<Output> unpack(Output x, int64_t num, int64_t axis = 0, Location at = here()) { return op_outputs("Unpack", {x}, {{"num", num}, {"axis", axis}}, at); }
inline Output slice(Output x, Output begin, Output size, Location at = here()) { return op("Slice", {x, begin, size}, {}, at); }
// `masks`: begin_mask, end_mask, ellipsis_mask, new_axis_mask, shrink_axis_mask; 0 where left out.
inline Output strided_slice(Output x, Output begin, Output end, Output strides, AttrMap masks = {}, Location at = here()) { return op("StridedSlice", {x, begin, end, strides}, std::move(masks), at); }
inline Output strided_slice_grad(Output shape, Output begin, Output end, Output strides, Output dy, AttrMap masks = {}, Location at = here()) { return op("StridedSliceGrad", {shape, begin, end, strides, dy}, std::move(masks), at); }
inline Output gather(Output params, Output indices, int axis = 0, Location at = here()) { return op("GatherV2", {params, indices, constant(params.graph(), Tensor::scalar<int32_t>(axis), "axis", at)}, {}, at); }
inline Output where(Output x, Location at = here()) { return op("Where", {x}, {}, at); }
inline Output dynamic_stitch(const std::vector<Output>& indices, const std::vector<Output>& data, Location at = here()) { std::vector<Output> all = indices; all.insert(all.end(), data.begin(), data.end()); return op("DynamicStitch", all, {}, at); }
inline Output unsorted_segment_sum(Output data, Output segment_ids, Output num_segments, Location at = here()) { return op("UnsortedSegmentSum", {data, segment_ids, num_segments}, {}, at); }
inline Output segment_sum(Output data, Output segment_ids, Location at = here()) { return op("SegmentSum", {data, segment_ids}, {}, at); }
inline std::vector<Output> dynamic_partition(Output data, Output partitions, int64_t num_partitions, Location at = here()) { return op_outputs("DynamicPartition", {data, partitions}, {{"num_partitions", num_partitions}}, at); }
// {the different values, the number of each x among them}
inline std::vector<Output> unique(Output x, DType out_idx = i32, Location at = here()) { return op_outputs("Unique", {x}, {{"out_idx", out_idx}}, at); }
inline Output one_hot(Output indices, Output depth, Output on_value, Output off_value, int64_t axis = -1, Location at = here()) { return op("OneHot", {indices, depth, on_value, off_value}, {{"axis", axis}}, at); }
inline Output range(Output start, Output limit, Output delta, Location at = here()) { return op("Range", {start, limit, delta}, {}, at); }

// ---- random numbers; seeds of 0 and 0 draw a seed ----
inline Output random_uniform(Output shape, DType dtype, int64_t seed = 0, int64_t seed2 = 0, Location at = here()) { return op("RandomUniform", {shape}, {{"dtype", dtype}, {"seed", seed}, {"seed2", seed2}}, at); }
inline Output random_uniform_int(Output shape, Output minval, Output maxval, int64_t seed = 0, int64_t seed2 = 0, Location at = here()) { return op("RandomUniformInt", {shape, minval, maxval}, {{"seed", seed}, {"seed2", seed2}}, at); }
inline Output random_standard_normal(Output shape, DType dtype, int64_t seed = 0, int64_t seed2 = 0, Location at = here()) { return op("RandomStandardNormal", {shape}, {{"dtype", dtype}, {"seed", seed}, {"seed2", seed2}}, at); }
inline Output truncated_normal(Output shape, DType dtype, int64_t seed = 0, int64_t seed2 = 0, Location at = here()) { return op("TruncatedNormal", {shape}, {{"dtype", dtype}, {"seed", seed}, {"seed2", seed2}}, at); }
inline Output random_shuffle(Output x, int64_t seed = 0, int64_t seed2 = 0, Location at = here()) { return op("RandomShuffle", {x}, {{"seed", seed}, {"seed2", seed2}}, at); }
inline Output multinomial(Output logits, Output num_samples, int64_t seed = 0, int64_t seed2 = 0, Location at = here()) { return op("Multinomial", {logits, num_samples}, {{"seed", seed}, {"seed2", seed2}}, at); }

// ---- strings ----
inline Output as_string(Output x, AttrMap attrs = {}, Location at = here()) { return op("AsString", {x}, std::move(attrs), at); }
inline Output string_to_number(Output x, DType out_type = f32, Location at = here()) { return op("StringToNumber", {x}, {{"out_type", out_type}}, at); }
// {indices, values, shape} of a sparse matrix: a row per string.
inline std::vector<Output> string_split(Output x, Output separator, int64_t maxsplit = -1, Location at = here()) { return op_outputs("StringSplitV2", {x, separator}, {{"maxsplit", maxsplit}}, at); }
inline Output string_strip(Output x, Location at = here()) { return op("StringStrip", {x}, {}, at); }
inline Output string_lower(Output x, Location at = here()) { return op("StringLower", {x}, {}, at); }
inline Output string_upper(Output x, Location at = here()) { return op("StringUpper", {x}, {}, at); }
inline Output string_length(Output x, Location at = here()) { return op("StringLength", {x}, {}, at); }
inline Output substr(Output x, Output position, Output length, Location at = here()) { return op("Substr", {x, position, length}, {}, at); }
inline Output regex_replace(Output x, Output pattern, Output rewrite, Location at = here()) { return op("RegexReplace", {x, pattern, rewrite}, {}, at); }
inline Output decode_raw(Output x, DType out_type, Location at = here()) { return op("DecodeRaw", {x}, {{"out_type", out_type}}, at); }

// ---- sparse tensors: indices [n, rank], values [n], dense shape [rank] ----
// {indices, values}, in row-major order.
inline std::vector<Output> sparse_reorder(Output indices, Output values, Output shape, Location at = here()) { return op_outputs("SparseReorder", {indices, values, shape}, {}, at); }
// {indices, shape}
inline std::vector<Output> sparse_reshape(Output indices, Output shape, Output new_shape, Location at = here()) { return op_outputs("SparseReshape", {indices, shape, new_shape}, {}, at); }
// {indices, values, which rows were empty, the new place of each entry}
inline std::vector<Output> sparse_fill_empty_rows(Output indices, Output values, Output shape, Output default_value, Location at = here()) { return op_outputs("SparseFillEmptyRows", {indices, values, shape, default_value}, {}, at); }
inline Output sparse_tensor_dense_add(Output indices, Output values, Output shape, Output dense, Location at = here()) { return op("SparseTensorDenseAdd", {indices, values, shape, dense}, {}, at); }

// ---- control flow ----
// {if false, if true}: the other one is dead.
inline std::vector<Output> switch_on(Output data, Output pred, Location at = here()) { return op_outputs("Switch", {data, pred}, {}, at); }
// {the live input, its number}
inline std::vector<Output> merge(const std::vector<Output>& inputs, Location at = here()) { return op_outputs("Merge", inputs, {}, at); }

// ---- summaries: values for event files ----
inline Output scalar_summary(std::string_view tag, Output value, Location at = here()) { return op("ScalarSummary", {constant(value.graph(), Tensor::scalar(std::string(tag)), "tag", at), value}, {}, at); }
inline Output histogram_summary(std::string_view tag, Output values, Location at = here()) { return op("HistogramSummary", {constant(values.graph(), Tensor::scalar(std::string(tag)), "tag", at), values}, {}, at); }
inline Output merge_summaries(const std::vector<Output>& summaries, Location at = here()) { return op("MergeSummary", summaries, {}, at); }

// ---- variables ----
inline Output is_variable_initialized(Output ref, Location at = here()) { return op("IsVariableInitialized", {ref}, {}, at); }
inline Output assign(Output ref, Output value, Location at = here()) { return op("Assign", {ref, value}, {}, at); }
inline Output assign_add(Output ref, Output value, Location at = here()) { return op("AssignAdd", {ref, value}, {}, at); }
inline Output scatter_update(Output ref, Output indices, Output updates, Location at = here()) { return op("ScatterUpdate", {ref, indices, updates}, {}, at); }
inline Output scatter_add(Output ref, Output indices, Output updates, Location at = here()) { return op("ScatterAdd", {ref, indices, updates}, {}, at); }
inline Output scatter_sub(Output ref, Output indices, Output updates, Location at = here()) { return op("ScatterSub", {ref, indices, updates}, {}, at); }
inline Output assign_sub(Output ref, Output value, Location at = here()) { return op("AssignSub", {ref, value}, {}, at); }
// clang-format on

}  // namespace leat
