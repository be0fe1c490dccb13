#include "graph/passes/mixed_precision/precision_rules.h"

#include <unordered_map>

namespace leat {
namespace {

using Rules = std::unordered_map<std::string_view, PrecisionRule>;

Rules make_rules() {
  Rules out;
  const auto add = [&](PrecisionRule rule, std::initializer_list<std::string_view> ops) {
    for (const std::string_view op : ops) out.emplace(op, rule);
  };
  add(PrecisionRule::product,
      {"BatchMatMul", "BatchMatMulV2", "Conv2D", "Conv2DBackpropFilter", "Conv2DBackpropInput",
       "Conv3D", "Conv3DBackpropFilterV2", "Conv3DBackpropInputV2", "DepthwiseConv2dNative",
       "DepthwiseConv2dNativeBackpropFilter", "DepthwiseConv2dNativeBackpropInput", "Einsum",
       "GruLayer", "GruLayerGrad", "LstmLayer", "LstmLayerGrad", "MatMul"});
  // Arithmetic that loses no more than the rounding of its result.
  add(PrecisionRule::follows,
      {"Add", "AddN", "AddV2", "BiasAdd", "BiasAddV1", "Maximum", "Minimum", "Mul", "Neg", "Sub"});
  // Activations.
  add(PrecisionRule::follows,
      {"Elu", "EluGrad", "Erf", "LeakyRelu", "LeakyReluGrad", "Relu", "Relu6", "Relu6Grad",
       "ReluGrad", "Selu", "SeluGrad", "Sigmoid", "SigmoidGrad", "Softplus", "SoftplusGrad",
       "Softsign", "SoftsignGrad", "Tanh", "TanhGrad"});
  // Layers: statistics have a type of their own, float32.
  add(PrecisionRule::follows,
      {"AvgPool", "AvgPool3D", "AvgPool3DGrad", "AvgPoolGrad", "FusedBatchNormGradV2",
       "FusedBatchNormGradV3", "FusedBatchNormV2", "FusedBatchNormV3", "MaxPool", "MaxPool3D",
       "MaxPoolGrad", "_MaxPoolReluGrad"});
  // Elements keep their values.
  add(PrecisionRule::follows, {"BatchToSpaceND",
                               "BroadcastTo",
                               "Concat",
                               "ConcatV2",
                               "DepthToSpace",
                               "ExpandDims",
                               "Identity",
                               "MirrorPad",
                               "MirrorPadGrad",
                               "OnesLike",
                               "Pack",
                               "Pad",
                               "PadV2",
                               "PreventGradient",
                               "Reshape",
                               "ReverseV2",
                               "Select",
                               "SelectV2",
                               "Slice",
                               "SpaceToBatchND",
                               "SpaceToDepth",
                               "Split",
                               "SplitV",
                               "Squeeze",
                               "StopGradient",
                               "StridedSlice",
                               "StridedSliceGrad",
                               "Tile",
                               "Transpose",
                               "Unpack",
                               "ZerosLike"});
  add(PrecisionRule::reduces, {"BiasAddGrad"});
  add(PrecisionRule::shape, {"Rank", "Shape", "ShapeN", "Size"});
  return out;
}

}  // namespace

PrecisionRule precision_rule(const Node& node) {
  static const Rules rules = make_rules();
  const auto found = rules.find(node.op->name);
  return found == rules.end() ? PrecisionRule::exact : found->second;
}

}  // namespace leat
