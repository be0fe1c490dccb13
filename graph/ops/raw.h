// Ops as they are registered, for gradients and passes: their attributes are those of the op.
#pragma once

#include "graph/ops/operand.h"

namespace leat {

// ---- Gradients ----
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
inline Output bias_add_grad(Output dy, std::string_view data_format = "NHWC",
                            Location at = here()) {
  return op("BiasAddGrad", {dy}, {{"data_format", data_format}}, at);
}

// ---- Neural networks ----
// {y, mean, variance, …}, see FusedBatchNormV3.
inline std::vector<Output> fused_batch_norm(Output x, Output scale, Output offset, Output mean,
                                            Output variance, AttrMap attrs = {},
                                            Location at = here()) {
  return op_outputs("FusedBatchNormV3", {x, scale, offset, mean, variance}, std::move(attrs), at);
}

// ---- Shapes ----
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

}  // namespace leat
