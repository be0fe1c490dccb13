// All builder functions of C++ programs, gradients and passes: those of graph/ops/, by topic, and
// here those without a topic yet.
//   Output h = relu(matmul(x, w) + b);
#pragma once

#include "graph/ops/arrays.h"
#include "graph/ops/linear_algebra.h"
#include "graph/ops/math.h"
#include "graph/ops/neural.h"
#include "graph/ops/random.h"
#include "graph/ops/variables.h"

namespace leat {

// ---- values passed on ----
inline std::vector<Output> identity_n(const std::vector<Output>& x, Location at = here()) {
  return op_outputs("IdentityN", x, {}, at);
}
inline Output prevent_gradient(Output x, std::string_view message, Location at = here()) {
  return op("PreventGradient", {x}, {{"message", message}}, at);
}
inline Output placeholder_with_default(Output x, const Shape& shape, Location at = here()) {
  return op("PlaceholderWithDefault", {x}, {{"shape", shape}}, at);
}
// Inputs of any types: the condition, then what the error shows.
inline Node& assert_that(Output condition, std::vector<Output> data, Location at = here()) {
  data.insert(data.begin(), condition);
  return op_node(condition.graph(), "Assert", data, {}, at);
}
inline Node& no_op(Graph& graph, std::string_view name = "NoOp", Location at = here()) {
  return graph.add({.op = "NoOp", .name = std::string(name), .location = at});
}

// ---- for gradients ----
inline Output relu_grad(Output dy, Output x, Location at = here()) {
  return op("ReluGrad", {dy, x}, {}, at);
}
inline Output sigmoid_grad(Output y, Output dy, Location at = here()) {
  return op("SigmoidGrad", {y, dy}, {}, at);
}
inline Output tanh_grad(Output y, Output dy, Location at = here()) {
  return op("TanhGrad", {y, dy}, {}, at);
}
inline Output sqrt_grad(Output y, Output dy, Location at = here()) {
  return op("SqrtGrad", {y, dy}, {}, at);
}
inline Output rsqrt_grad(Output y, Output dy, Location at = here()) {
  return op("RsqrtGrad", {y, dy}, {}, at);
}
inline Output reciprocal_grad(Output y, Output dy, Location at = here()) {
  return op("ReciprocalGrad", {y, dy}, {}, at);
}
inline Output broadcast_gradient_args(Output s0, Output s1, Location at = here()) {
  return op("BroadcastGradientArgs", {s0, s1}, {}, at);
}

// ---- neural networks ----
inline Output bias_add_grad(Output dy, std::string_view data_format = "NHWC",
                            Location at = here()) {
  return op("BiasAddGrad", {dy}, {{"data_format", data_format}}, at);
}

// ---- images [batch, height, width, channels] ----
// {y, mean, variance, …}, see FusedBatchNormV3.
inline std::vector<Output> fused_batch_norm(Output x, Output scale, Output offset, Output mean,
                                            Output variance, AttrMap attrs = {},
                                            Location at = here()) {
  return op_outputs("FusedBatchNormV3", {x, scale, offset, mean, variance}, std::move(attrs), at);
}

inline Output space_to_depth(Output x, int64_t block_size, Location at = here()) {
  return op("SpaceToDepth", {x}, {{"block_size", block_size}}, at);
}
inline Output depth_to_space(Output x, int64_t block_size, Location at = here()) {
  return op("DepthToSpace", {x}, {{"block_size", block_size}}, at);
}
inline Output space_to_batch(Output x, Output block_shape, Output paddings, Location at = here()) {
  return op("SpaceToBatchND", {x, block_shape, paddings}, {}, at);
}
inline Output batch_to_space(Output x, Output block_shape, Output crops, Location at = here()) {
  return op("BatchToSpaceND", {x, block_shape, crops}, {}, at);
}
// `size` is [height, width]; `attrs`: align_corners, half_pixel_centers.
inline Output resize_bilinear(Output images, Output size, AttrMap attrs = {},
                              Location at = here()) {
  return op("ResizeBilinear", {images, size}, std::move(attrs), at);
}
inline Output resize_bicubic(Output images, Output size, AttrMap attrs = {}, Location at = here()) {
  return op("ResizeBicubic", {images, size}, std::move(attrs), at);
}
inline Output resize_nearest_neighbor(Output images, Output size, AttrMap attrs = {},
                                      Location at = here()) {
  return op("ResizeNearestNeighbor", {images, size}, std::move(attrs), at);
}
inline Output crop_and_resize(Output images, Output boxes, Output box_images, Output crop_size,
                              AttrMap attrs = {}, Location at = here()) {
  return op("CropAndResize", {images, boxes, box_images, crop_size}, std::move(attrs), at);
}
inline Output rgb_to_hsv(Output images, Location at = here()) {
  return op("RGBToHSV", {images}, {}, at);
}
inline Output hsv_to_rgb(Output images, Location at = here()) {
  return op("HSVToRGB", {images}, {}, at);
}
inline Output adjust_contrast(Output images, Output factor, Location at = here()) {
  return op("AdjustContrastv2", {images, factor}, {}, at);
}

// ---- shapes ----
inline std::vector<Output> shape_n(const std::vector<Output>& x, DType out_type = i32,
                                   Location at = here()) {
  return op_outputs("ShapeN", x, {{"out_type", out_type}}, at);
}
inline Output invert_permutation(Output x, Location at = here()) {
  return op("InvertPermutation", {x}, {}, at);
}
inline std::vector<Output> concat_offset(Output axis, const std::vector<Output>& shapes,
                                         Location at = here()) {
  std::vector<Output> all = {axis};
  all.insert(all.end(), shapes.begin(), shapes.end());
  return op_outputs("ConcatOffset", all, {}, at);
}
// `masks`: begin_mask, end_mask, ellipsis_mask, new_axis_mask, shrink_axis_mask; 0 where left out.
inline Output strided_slice(Output x, Output begin, Output end, Output strides, AttrMap masks = {},
                            Location at = here()) {
  return op("StridedSlice", {x, begin, end, strides}, std::move(masks), at);
}
inline Output strided_slice_grad(Output shape, Output begin, Output end, Output strides, Output dy,
                                 AttrMap masks = {}, Location at = here()) {
  return op("StridedSliceGrad", {shape, begin, end, strides, dy}, std::move(masks), at);
}
inline Output dynamic_stitch(const std::vector<Output>& indices, const std::vector<Output>& data,
                             Location at = here()) {
  std::vector<Output> all = indices;
  all.insert(all.end(), data.begin(), data.end());
  return op("DynamicStitch", all, {}, at);
}
inline Output unsorted_segment_sum(Output data, Output segment_ids, const Operand& num_segments,
                                   Location at = here()) {
  return op("UnsortedSegmentSum", {data, segment_ids, num_segments.as(data.graph(), i32)}, {}, at);
}
inline std::vector<Output> dynamic_partition(Output data, Output partitions, int64_t num_partitions,
                                             Location at = here()) {
  return op_outputs("DynamicPartition", {data, partitions}, {{"num_partitions", num_partitions}},
                    at);
}

// ---- strings ----
inline Output as_string(Output x, AttrMap attrs = {}, Location at = here()) {
  return op("AsString", {x}, std::move(attrs), at);
}
inline Output string_to_number(Output x, DType out_type = f32, Location at = here()) {
  return op("StringToNumber", {x}, {{"out_type", out_type}}, at);
}
// {indices, values, shape} of a sparse matrix: a row per string.
inline std::vector<Output> string_split(Output x, const TensorLike& separator,
                                        int64_t maxsplit = -1, Location at = here()) {
  return op_outputs("StringSplitV2", {x, separator.in(x.graph())}, {{"maxsplit", maxsplit}}, at);
}
inline Output string_strip(Output x, Location at = here()) {
  return op("StringStrip", {x}, {}, at);
}
inline Output string_lower(Output x, Location at = here()) {
  return op("StringLower", {x}, {}, at);
}
inline Output string_upper(Output x, Location at = here()) {
  return op("StringUpper", {x}, {}, at);
}
inline Output string_length(Output x, Location at = here()) {
  return op("StringLength", {x}, {}, at);
}
inline Output substr(Output x, Output position, Output length, Location at = here()) {
  return op("Substr", {x, position, length}, {}, at);
}
inline Output regex_replace(Output x, Output pattern, Output rewrite, Location at = here()) {
  return op("RegexReplace", {x, pattern, rewrite}, {}, at);
}
inline Output decode_raw(Output x, DType out_type, Location at = here()) {
  return op("DecodeRaw", {x}, {{"out_type", out_type}}, at);
}

// ---- sparse tensors: indices [n, rank], values [n], dense shape [rank] ----
// {indices, values}, in row-major order.
inline std::vector<Output> sparse_reorder(Output indices, Output values, Output shape,
                                          Location at = here()) {
  return op_outputs("SparseReorder", {indices, values, shape}, {}, at);
}
// {indices, shape}
inline std::vector<Output> sparse_reshape(Output indices, Output shape, Output new_shape,
                                          Location at = here()) {
  return op_outputs("SparseReshape", {indices, shape, new_shape}, {}, at);
}
// {indices, values, which rows were empty, the new place of each entry}
inline std::vector<Output> sparse_fill_empty_rows(Output indices, Output values, Output shape,
                                                  Output default_value, Location at = here()) {
  return op_outputs("SparseFillEmptyRows", {indices, values, shape, default_value}, {}, at);
}
inline Output sparse_tensor_dense_add(Output indices, Output values, Output shape, Output dense,
                                      Location at = here()) {
  return op("SparseTensorDenseAdd", {indices, values, shape, dense}, {}, at);
}

// ---- control flow ----
// {if false, if true}: the other one is dead.
inline std::vector<Output> switch_on(Output data, Output pred, Location at = here()) {
  return op_outputs("Switch", {data, pred}, {}, at);
}
// {the live input, its number}
inline std::vector<Output> merge(const std::vector<Output>& inputs, Location at = here()) {
  return op_outputs("Merge", inputs, {}, at);
}

// ---- summaries: values for event files ----
inline Output scalar_summary(std::string_view tag, Output value, Location at = here()) {
  return op("ScalarSummary",
            {constant(value.graph(), Tensor::scalar(std::string(tag)), "tag", at), value}, {}, at);
}
inline Output histogram_summary(std::string_view tag, Output values, Location at = here()) {
  return op("HistogramSummary",
            {constant(values.graph(), Tensor::scalar(std::string(tag)), "tag", at), values}, {},
            at);
}
inline Output merge_summaries(const std::vector<Output>& summaries, Location at = here()) {
  return op("MergeSummary", summaries, {}, at);
}

}  // namespace leat
