#include "tests/kernels/rows.h"

#include <cmath>

#include "kernels/examples.h"
#include "tests/support/run_op.h"

namespace leat {
namespace {

const Shape matrix = {3, 4};

std::vector<int64_t> longs_of(std::initializer_list<int64_t> values) { return values; }

// The attributes of a sliding window over NHWC images.
AttrMap windows(std::initializer_list<int64_t> strides, const char* padding, AttrMap more = {}) {
  more["strides"] = longs_of({1, strides.begin()[0], strides.begin()[1], 1});
  more["padding"] = padding;
  return more;
}

// The same over NDHWC volumes.
AttrMap volumes(std::initializer_list<int64_t> strides, const char* padding) {
  return {{"strides", longs_of({1, strides.begin()[0], strides.begin()[1], strides.begin()[2], 1})},
          {"padding", padding}};
}

void add_pools(std::vector<Row>& rows) {
  const Shape image = {2, 5, 4, 3};
  const auto add = [&](std::string op, std::vector<Shape> shapes, AttrMap attrs, Row rest = {}) {
    attrs["ksize"] = longs_of({1, 3, 2, 1});
    rest.op = std::move(op);
    rest.shapes = std::move(shapes);
    rest.attrs = std::move(attrs);
    rest.low = -20;  // so that few of the integers are equal
    rest.high = 20;
    rows.push_back(std::move(rest));
  };
  const AttrMap same = windows({2, 1}, "SAME"), valid = windows({1, 2}, "VALID");
  const Shape same_pooled = {2, 3, 4, 3}, valid_pooled = {2, 3, 2, 3};
  for (std::string op : {"MaxPool", "AvgPool"}) {
    add(op, {image}, same);
    add(op, {image}, valid);
    AttrMap channels_first = same;
    channels_first["strides"] = longs_of({1, 1, 2, 1});
    channels_first["ksize"] = longs_of({1, 1, 3, 2});
    channels_first["data_format"] = "NCHW";
    rows.push_back({.op = op, .shapes = {{2, 3, 5, 4}}, .attrs = channels_first});
  }
  add("MaxPoolWithArgmax", {image}, same);
  rows.push_back({.op = "MaxPoolWithArgmax",  // over channels, which TensorFlow's does not do
                  .shapes = {{2, 2, 3, 6}},
                  .attrs = {{"ksize", longs_of({1, 1, 1, 3})},
                            {"strides", longs_of({1, 1, 1, 3})},
                            {"padding", "VALID"}},
                  .low = -20,
                  .high = 20});
  add("MaxPoolGrad", {image, same_pooled, same_pooled}, same, {.no_gradient = {0, 1}});
  add("MaxPoolGradGrad", {image, valid_pooled, image}, valid, {.no_gradient = {0, 1}});
  const auto by_values = [&](std::string op, std::vector<Shape> shapes, Row rest = {}) {
    const int first = static_cast<int>(shapes.size());
    for (int i = 0; i < 2; ++i) shapes.push_back({4});
    rest.fixed = {{first, Tensor::of<int32_t>({4}, {1, 3, 2, 1})},
                  {first + 1, Tensor::of<int32_t>({4}, {1, 2, 1, 1})}};
    rest.op = std::move(op);
    rest.shapes = std::move(shapes);
    rest.attrs = {{"padding", "SAME"}};
    rest.low = -20;
    rest.high = 20;
    rows.push_back(std::move(rest));
  };
  by_values("MaxPoolV2", {image});
  by_values("MaxPoolGradV2", {image, same_pooled, same_pooled}, {.no_gradient = {0, 1}});
  by_values("MaxPoolGradGradV2", {image, same_pooled, image}, {.no_gradient = {0, 1}});
  for (const char* op : {"FractionalMaxPool", "FractionalAvgPool"}) {
    for (const bool flag : {false, true}) {
      rows.push_back({.op = op,
                      .shapes = {{2, 7, 6, 3}},
                      .attrs = {{"pooling_ratio", std::vector<float>{1, 1.5F, 1.7F, 1}},
                                {"overlapping", flag},
                                {"pseudo_random", flag},
                                {"deterministic", true},
                                {"seed", int64_t{3}}},
                      .low = -20,
                      .high = 20});
    }
  }
  AttrMap patches = volumes({2, 1, 1}, "SAME");
  patches["ksizes"] = longs_of({1, 3, 2, 2, 1});
  rows.push_back({.op = "ExtractVolumePatches", .shapes = {{2, 3, 2, 4, 2}}, .attrs = patches});
  AttrMap volume = volumes({2, 1, 1}, "SAME");
  volume["ksize"] = longs_of({1, 3, 2, 2, 1});
  const Shape volumes_in = {2, 3, 2, 4, 2}, volumes_out = {2, 2, 2, 4, 2};
  rows.push_back({.op = "MaxPool3D", .shapes = {volumes_in}, .attrs = volume});
  rows.push_back({.op = "AvgPool3D", .shapes = {volumes_in}, .attrs = volume});
  rows.push_back({.op = "MaxPool3DGradGrad",
                  .shapes = {volumes_in, volumes_out, volumes_in},
                  .attrs = volume,
                  .low = -20,
                  .high = 20,
                  .no_gradient = {0, 1}});
  rows.push_back({.op = "AvgPool3DGrad",
                  .shapes = {{5}, volumes_out},
                  .attrs = volume,
                  .fixed = {{0, ints({2, 3, 2, 4, 2})}}});
  add("AvgPoolGrad", {{4}, same_pooled}, same, {.fixed = {{0, ints({2, 5, 4, 3})}}});
}

std::vector<Row> table() {
  std::vector<Row> rows = {
      // ---- elementwise ----
      {.op = "Abs", .shapes = {matrix}, .avoid = {0}},
      {.op = "Relu", .shapes = {matrix}, .avoid = {0}},
      {.op = "ReluGrad", .shapes = {matrix, matrix}, .avoid = {0}, .no_gradient = {1}},
      {.op = "Log", .shapes = {matrix}, .low = 0.5},
      {.op = "Sqrt", .shapes = {matrix}, .low = 0.5},
      {.op = "SqrtGrad", .shapes = {matrix, matrix}, .low = 0.5},
      {.op = "Rsqrt", .shapes = {matrix}, .low = 0.5},
      {.op = "Reciprocal", .shapes = {matrix}, .low = 0.5},
      {.op = "Pow", .shapes = {matrix, matrix}, .low = 0.5},
      {.op = "Pow", .shapes = {{4}, {3, 1}}, .low = 0.5},
      {.op = "RealDiv", .shapes = {matrix, matrix}, .low = 0.5},
      {.op = "RealDiv", .shapes = {matrix, {}}, .low = 0.5},
      {.op = "Div", .shapes = {matrix, {4}}, .low = 1, .high = 5},
      {.op = "DivNoNan", .shapes = {{3, 1}, {4}}, .low = 0.5},
      {.op = "FloorMod", .shapes = {matrix, {4}}, .low = 0.5},
      {.op = "Tan", .shapes = {matrix}, .low = -1, .high = 1},
      {.op = "Asin", .shapes = {matrix}, .low = -0.9, .high = 0.9},
      {.op = "Acos", .shapes = {matrix}, .low = -0.9, .high = 0.9},
      {.op = "Acosh", .shapes = {matrix}, .low = 1.2, .high = 4},
      {.op = "Atanh", .shapes = {matrix}, .low = -0.9, .high = 0.9},
      {.op = "Atan2", .shapes = {{3, 1}, {4}}, .avoid = {0}},
      {.op = "Log1p", .shapes = {matrix}, .low = -0.5},
      {.op = "Lgamma", .shapes = {matrix}, .low = 0.5, .high = 5},
      {.op = "Digamma", .shapes = {matrix}, .low = 0.5, .high = 5},
      {.op = "Polygamma", .shapes = {{}, matrix}, .fixed = {{0, Tensor::scalar(2.0f)}}, .low = 0.5},
      {.op = "Zeta", .shapes = {matrix, {4}}, .low = 1.5, .high = 4, .no_gradient = {0}},
      {.op = "Igamma", .shapes = {{3, 1}, {4}}, .low = 0.5, .high = 5},
      {.op = "Igammac", .shapes = {matrix, {4}}, .low = 0.5, .high = 5},
      {.op = "DataFormatVecPermute", .shapes = {{4, 2}}},
      {.op = "Betainc",
       .shapes = {{}, {}, matrix},
       .fixed = {{0, Tensor::scalar(2.5F)}, {1, Tensor::scalar(0.75F)}},
       .low = 0.1,
       .high = 0.9},
      {.op = "Betainc",
       .shapes = {{3}, {3}, {}},
       .fixed = {{0, floats({2.5F, 1, 20})}, {1, floats({0.75F, 3, 30})}},
       .low = 0.3,
       .high = 0.6},
      {.op = "Erfinv", .shapes = {matrix}, .low = -0.9, .high = 0.9},
      {.op = "Ndtri", .shapes = {matrix}, .low = 0.05, .high = 0.95},
      {.op = "Expint", .shapes = {matrix}, .low = 0.5, .high = 5},
      {.op = "Spence", .shapes = {matrix}, .low = 0.2, .high = 5},
      {.op = "BesselK0", .shapes = {matrix}, .low = 0.5, .high = 3},
      {.op = "BesselK0e", .shapes = {matrix}, .low = 0.5, .high = 3},
      {.op = "BesselK1", .shapes = {matrix}, .low = 0.5, .high = 3},
      {.op = "BesselK1e", .shapes = {matrix}, .low = 0.5, .high = 3},
      {.op = "BesselY0", .shapes = {matrix}, .low = 0.5, .high = 5},
      {.op = "BesselY1", .shapes = {matrix}, .low = 0.5, .high = 5},
      {.op = "CumulativeLogsumexp", .shapes = {matrix, {}}, .fixed = {{1, Tensor::scalar(1)}}},
      {.op = "CumulativeLogsumexp",
       .shapes = {matrix, {}},
       .attrs = {{"reverse", true}},
       .fixed = {{1, Tensor::scalar(0)}}},
      {.op = "ClipByValue",
       .shapes = {matrix, {}, {}},
       .fixed = {{1, Tensor::scalar(1.0F)}, {2, Tensor::scalar(2.0F)}},
       .low = 0,
       .high = 3,
       .avoid = {1, 2}},
      {.op = "ClipByValue",
       .shapes = {matrix, matrix, {}},
       .fixed = {{2, Tensor::scalar(9.0F)}},
       .low = 0,
       .high = 5},
      {.op = "PopulationCount", .shapes = {matrix}, .low = 0, .high = 100},
      {.op = "ConjugateTranspose", .shapes = {matrix, {2}}, .fixed = {{1, ints({1, 0})}}},
      {.op = "TridiagonalSolve",
       .shapes = {{2, 3, 4}, {2, 4, 3}},
       .fixed = {{0, floats({2, 3, 4}, {1, 2, 1, 0, 4, 5, 6, 4, 0, 1, 2, 1,
                                        1, 1, 2, 0, 4, 4, 4, 4, 0, 1, 2, 1})}}},
      {.op = "TridiagonalMatMul", .shapes = {{1, 4}, {1, 4}, {1, 4}, {4, 3}}},
      {.op = "EncodePng", .shapes = {{4, 5, 3}}, .low = 0, .high = 200},
      {.op = "MulNoNan", .shapes = {{3, 1}, {4}}, .avoid = {0}},
      {.op = "Xdivy", .shapes = {{3, 1}, {4}}, .low = 0.5},
      {.op = "Xlogy", .shapes = {{3, 1}, {4}}, .low = 0.5},
      {.op = "Xlog1py", .shapes = {{3, 1}, {4}}, .low = 0.5},
      {.op = "Inv", .shapes = {matrix}, .low = 0.5},
      {.op = "TruncateDiv", .shapes = {matrix, {4}}, .low = 1, .high = 5},
      {.op = "TruncateMod", .shapes = {matrix, {4}}, .low = 1, .high = 5},
      {.op = "Mod", .shapes = {matrix, {4}}, .low = 1, .high = 5},
      {.op = "Softsign", .shapes = {matrix}, .avoid = {0}},
      {.op = "Round", .shapes = {matrix}, .avoid = {-1.5, -0.5, 0.5, 1.5}},
      {.op = "Select",
       .shapes = {matrix, matrix, matrix},
       .fixed = {{0, bools({true, false, true})}}},
      {.op = "SelectV2",
       .shapes = {{4}, {3, 1}, {4}},
       .fixed = {{0, bools({true, false, true, false})}}},
      {.op = "AddN", .shapes = {matrix, matrix, matrix}},
      {.op = "BroadcastTo", .shapes = {{3, 1}, {3}}, .fixed = {{1, ints({2, 3, 4})}}},
      {.op = "BroadcastArgs",
       .shapes = {{2}, {1}},
       .fixed = {{0, floats({3, 1})}, {1, floats({4})}}},
      {.op = "Cumsum", .shapes = {matrix, {}}, .fixed = {{1, Tensor::scalar(1)}}},
      {.op = "Cumsum",
       .shapes = {matrix, {}},
       .attrs = {{"exclusive", true}, {"reverse", true}},
       .fixed = {{1, Tensor::scalar(0)}}},
      {.op = "Cumprod", .shapes = {matrix, {}}, .fixed = {{1, Tensor::scalar(-1)}}, .low = 0.5},
      {.op = "FloorDiv", .shapes = {matrix, matrix}, .low = 1, .high = 5},
      {.op = "Cast", .shapes = {matrix}, .attrs = {{"DstT", f64}}},
      // ---- reductions ----
      {.op = "ArgMax", .shapes = {matrix, {}}, .fixed = {{1, Tensor::scalar(0)}}},
      {.op = "ArgMin", .shapes = {matrix, {}}, .fixed = {{1, Tensor::scalar(1)}}},
      // ---- linear algebra, neural networks ----
      {.op = "MatMul", .shapes = {{3, 4}, {4, 2}}},
      {.op = "MatMul", .shapes = {{4, 3}, {4, 2}}, .attrs = {{"transpose_a", true}}},
      {.op = "MatMul", .shapes = {{3, 4}, {2, 4}}, .attrs = {{"transpose_b", true}}},
      {.op = "MatMul",
       .shapes = {{4, 3}, {2, 4}},
       .attrs = {{"transpose_a", true}, {"transpose_b", true}}},
      {.op = "BatchMatMulV2", .shapes = {{2, 3, 4}, {4, 2}}},
      {.op = "BatchMatMulV2",
       .shapes = {{2, 1, 4, 3}, {3, 2, 4}},
       .attrs = {{"adj_x", true}, {"adj_y", true}}},
      {.op = "BatchMatMul", .shapes = {{2, 3, 4}, {2, 4, 2}}},
      {.op = "BatchMatMul",
       .shapes = {{2, 4, 3}, {2, 2, 4}},
       .attrs = {{"adj_x", true}, {"adj_y", true}}},
      {.op = "BiasAdd", .shapes = {{3, 4}, {4}}},
      {.op = "BiasAdd", .shapes = {{2, 3, 2, 2}, {3}}, .attrs = {{"data_format", "NCHW"}}},
      {.op = "Softmax", .shapes = {matrix}},
      {.op = "LogSoftmax", .shapes = {matrix}},
      // The derivative by the logits supposes that labels sum to 1; by the labels, nothing.
      {.op = "SoftmaxCrossEntropyWithLogits",
       .shapes = {{2, 3}, {2, 3}},
       .fixed = {{1, floats({2, 3}, {0.5, 0.25, 0.25, 0, 0, 1})}}},
      {.op = "SoftmaxCrossEntropyWithLogits",
       .shapes = {{2, 3}, {2, 3}},
       .fixed = {{0, floats({2, 3}, {1, 2, 3, -1, 0.5, 0})}},
       .low = 0.1},
      {.op = "SparseSoftmaxCrossEntropyWithLogits",
       .shapes = {matrix, {3}},
       .fixed = {{1, ints({0, 3, 1})}}},
      {.op = "CTCLoss",
       .shapes = {{4, 2, 3}, {3, 2}, {3}, {2}},
       .fixed = {{1, longs({3, 2}, {0, 0, 0, 1, 1, 0})}, {2, ints({1, 1, 0})}, {3, ints({4, 3})}}},
      {.op = "Relu6", .shapes = {matrix}, .low = -3, .high = 9, .avoid = {0, 6}},
      {.op = "Relu6Grad",
       .shapes = {matrix, matrix},
       .low = -3,
       .high = 9,
       .avoid = {0, 6},
       .no_gradient = {1}},
      {.op = "LeakyRelu", .shapes = {matrix}, .avoid = {0}},
      {.op = "LeakyReluGrad", .shapes = {matrix, matrix}, .avoid = {0}, .no_gradient = {1}},
      {.op = "Elu", .shapes = {matrix}, .avoid = {0}},
      {.op = "EluGrad", .shapes = {matrix, matrix}, .avoid = {0}},
      {.op = "Selu", .shapes = {matrix}, .avoid = {0}},
      {.op = "SeluGrad", .shapes = {matrix, matrix}, .avoid = {0}},
      {.op = "LRN", .shapes = {{2, 2, 2, 5}}, .attrs = {{"depth_radius", 1}}},
      {.op = "CheckNumerics", .shapes = {matrix}, .attrs = {{"message", "m"}}},
      {.op = "TopKV2",
       .shapes = {{2, 5}, {}},
       .fixed = {{0, floats({2, 5}, {1, 7, 4, 3, 0, 5, 6, 9, 2, 3})}, {1, Tensor::scalar(3)}},
       .needs_rank = true},
      {.op = "TopKV2",
       .shapes = {{2, 2, 3}, {}},
       .fixed = {{1, Tensor::scalar(2)}},
       .low = -20,
       .high = 20,
       .needs_rank = true},
      {.op = "Concat", .shapes = {{}, {3, 1}, {3, 2}}, .fixed = {{0, Tensor::scalar(1)}}},
      {.op = "SelfAdjointEigV2", .shapes = {{2, 3, 3}}},
      {.op = "Lu", .shapes = {{2, 3, 3}}},
      {.op = "MatrixSolveLs",
       .shapes = {{2, 4, 3}, {2, 4, 2}, {}},
       .fixed = {{2, Tensor::scalar(0.5)}}},
      {.op = "Bitcast",
       .shapes = {{3}},
       .attrs = {{"type", DType::i8}},
       .fixed = {{0, ints({1, 2, 3})}}},
      {.op = "NthElement",
       .shapes = {{2, 5}, {}},
       .fixed = {{1, Tensor::scalar(2)}},
       .low = -20,
       .high = 20},
      {.op = "Bucketize",
       .shapes = {matrix},
       .attrs = {{"boundaries", std::vector<float>{-1, 0, 0.5}}}},
      // ---- convolutions, pooling ----
      {.op = "ExtractImagePatches",
       .shapes = {{2, 5, 4, 3}},
       .attrs = windows({2, 1}, "SAME",
                        {{"ksizes", longs_of({1, 3, 2, 1})}, {"rates", longs_of({1, 1, 2, 1})}})},
      {.op = "Conv2D", .shapes = {{2, 5, 4, 3}, {3, 2, 3, 4}}, .attrs = windows({1, 2}, "SAME")},
      {.op = "Conv2D", .shapes = {{1, 6, 5, 2}, {2, 2, 2, 3}}, .attrs = windows({2, 1}, "VALID")},
      {.op = "Conv2D",  // dilated
       .shapes = {{1, 7, 6, 2}, {3, 2, 2, 3}},
       .attrs = windows({1, 1}, "SAME", {{"dilations", longs_of({1, 2, 3, 1})}})},
      {.op = "Conv2D",  // in 2 groups
       .shapes = {{2, 3, 3, 4}, {2, 2, 2, 6}},
       .attrs = windows({1, 1}, "VALID")},
      {.op = "Conv2D",
       .shapes = {{1, 4, 3, 2}, {2, 3, 2, 3}},
       .attrs = windows({2, 2}, "EXPLICIT",
                        {{"explicit_paddings", longs_of({0, 0, 1, 2, 0, 1, 0, 0})}})},
      {.op = "Conv2DBackpropInput",
       .shapes = {{4}, {3, 2, 3, 4}, {2, 5, 2, 4}},
       .attrs = windows({1, 2}, "SAME"),
       .fixed = {{0, ints({2, 5, 4, 3})}}},
      {.op = "Conv2DBackpropInput",
       .shapes = {{2}, {3, 2, 3, 4}, {2, 3, 3, 4}},
       .attrs = windows({1, 1}, "VALID"),
       .fixed = {{0, ints({5, 4})}}},
      {.op = "Conv2DBackpropFilter",
       .shapes = {{2, 5, 4, 3}, {4}, {2, 5, 2, 4}},
       .attrs = windows({1, 2}, "SAME"),
       .fixed = {{1, ints({3, 2, 3, 4})}}},
      {.op = "DepthwiseConv2dNative",
       .shapes = {{2, 4, 5, 3}, {3, 2, 3, 2}},
       .attrs = windows({2, 2}, "SAME")},
      {.op = "DepthwiseConv2dNativeBackpropInput",
       .shapes = {{4}, {3, 2, 3, 2}, {2, 2, 3, 6}},
       .attrs = windows({2, 2}, "SAME"),
       .fixed = {{0, ints({2, 4, 5, 3})}}},
      {.op = "DepthwiseConv2dNativeBackpropFilter",
       .shapes = {{2, 4, 5, 3}, {4}, {2, 2, 3, 6}},
       .attrs = windows({2, 2}, "SAME"),
       .fixed = {{1, ints({3, 2, 3, 2})}}},
      {.op = "Conv3D",
       .shapes = {{2, 3, 4, 3, 2}, {2, 3, 2, 2, 3}},
       .attrs = volumes({1, 2, 1}, "SAME")},
      {.op = "Conv3D",
       .shapes = {{1, 4, 3, 5, 2}, {3, 1, 2, 2, 2}},
       .attrs = volumes({1, 1, 2}, "VALID")},
      {.op = "Conv3DBackpropInputV2",
       .shapes = {{5}, {2, 3, 2, 2, 3}, {2, 3, 2, 3, 3}},
       .attrs = volumes({1, 2, 1}, "SAME"),
       .fixed = {{0, ints({2, 3, 4, 3, 2})}}},
      {.op = "Conv3DBackpropFilterV2",
       .shapes = {{2, 3, 4, 3, 2}, {5}, {2, 3, 2, 3, 3}},
       .attrs = volumes({1, 2, 1}, "SAME"),
       .fixed = {{1, ints({2, 3, 2, 2, 3})}}},
      {.op = "Dilation2D",
       .shapes = {{2, 4, 5, 2}, {2, 3, 2}},
       .attrs = windows({1, 2}, "SAME", {{"rates", longs_of({1, 1, 1, 1})}})},
      {.op = "Dilation2D",
       .shapes = {{1, 6, 5, 2}, {2, 2, 2}},
       .attrs = windows({1, 1}, "VALID", {{"rates", longs_of({1, 3, 2, 1})}})},
      // ---- images ----
      {.op = "SpaceToDepth", .shapes = {{2, 4, 6, 3}}, .attrs = {{"block_size", 2}}},
      {.op = "SpaceToDepth",
       .shapes = {{2, 3, 4, 6}},
       .attrs = {{"block_size", 2}, {"data_format", "NCHW"}}},
      {.op = "DepthToSpace", .shapes = {{2, 2, 3, 8}}, .attrs = {{"block_size", 2}}},
      {.op = "DepthToSpace",
       .shapes = {{2, 8, 2, 3}},
       .attrs = {{"block_size", 2}, {"data_format", "NCHW"}}},
      {.op = "SpaceToBatchND",
       .shapes = {{2, 4, 5, 2}, {2}, {2, 2}},
       .fixed = {{1, ints({2, 3})}, {2, ints({2, 2}, {1, 1, 0, 1})}}},
      {.op = "BatchToSpaceND",
       .shapes = {{6, 3, 2, 2}, {2}, {2, 2}},
       .fixed = {{1, ints({2, 3})}, {2, ints({2, 2}, {1, 1, 0, 4})}}},
      {.op = "SpaceToBatch",
       .shapes = {{2, 3, 4, 2}, {2, 2}},
       .attrs = {{"block_size", 2}},
       .fixed = {{1, ints({2, 2}, {1, 0, 1, 1})}}},
      {.op = "BatchToSpace",
       .shapes = {{4, 2, 2, 2}, {2, 2}},
       .attrs = {{"block_size", 2}},
       .fixed = {{1, ints({2, 2}, {1, 0, 1, 2})}}},
      {.op = "ResizeNearestNeighbor", .shapes = {{2, 3, 4, 2}, {2}}, .fixed = {{1, ints({5, 3})}}},
      {.op = "ResizeNearestNeighborGrad",
       .shapes = {{2, 5, 3, 2}, {2}},
       .attrs = {{"half_pixel_centers", true}},
       .fixed = {{1, ints({3, 4})}}},
      {.op = "RGBToHSV", .shapes = {{4, 3}}, .low = 0.2, .high = 1},
      {.op = "HSVToRGB", .shapes = {{4, 3}}, .low = 0, .high = 1},
      // ---- shapes, parts of tensors ----
      {.op = "Reshape", .shapes = {matrix, {2}}, .fixed = {{1, ints({6, -1})}}},
      {.op = "ExpandDims", .shapes = {matrix, {}}, .fixed = {{1, Tensor::scalar(1)}}},
      {.op = "Squeeze", .shapes = {{3, 1, 4}}},
      {.op = "Fill", .shapes = {{2}, {}}, .fixed = {{0, ints({2, 3})}}},
      {.op = "Tile", .shapes = {matrix, {2}}, .fixed = {{1, ints({2, 3})}}},
      {.op = "Transpose", .shapes = {{2, 3, 4}, {3}}, .fixed = {{1, ints({2, 0, 1})}}},
      {.op = "Pack", .shapes = {matrix, matrix}, .attrs = {{"axis", 1}}},
      {.op = "Unpack", .shapes = {matrix}, .attrs = {{"num", 4}, {"axis", 1}}, .output = 2},
      {.op = "ConcatV2", .shapes = {{3, 1}, {3, 2}, {}}, .fixed = {{2, Tensor::scalar(1)}}},
      {.op = "Split",
       .shapes = {{}, {3, 4}},
       .attrs = {{"num_split", 2}},
       .fixed = {{0, Tensor::scalar(1)}},
       .output = 1},
      {.op = "Pad", .shapes = {matrix, {2, 2}}, .fixed = {{1, ints({2, 2}, {1, 0, 2, 3})}}},
      {.op = "PadV2", .shapes = {matrix, {2, 2}, {}}, .fixed = {{1, ints({2, 2}, {0, 2, 1, 0})}}},
      {.op = "MirrorPad",
       .shapes = {matrix, {2, 2}},
       .attrs = {{"mode", "REFLECT"}},
       .fixed = {{1, ints({2, 2}, {2, 1, 0, 3})}}},
      {.op = "MirrorPad",
       .shapes = {{2, 3, 2}, {3, 2}},
       .attrs = {{"mode", "SYMMETRIC"}},
       .fixed = {{1, ints({3, 2}, {2, 1, 0, 3, 1, 1})}}},
      {.op = "MirrorPadGrad",
       .shapes = {{5, 7}, {2, 2}},
       .attrs = {{"mode", "REFLECT"}},
       .fixed = {{1, ints({2, 2}, {2, 0, 1, 2})}}},
      {.op = "SplitV",
       .shapes = {{3, 4}, {3}, {}},
       .attrs = {{"num_split", 3}},
       .fixed = {{1, ints({1, -1, 2})}, {2, Tensor::scalar(-1)}},
       .output = 2},
      {.op = "ReverseV2", .shapes = {{2, 3, 2}, {2}}, .fixed = {{1, ints({-1, 0})}}},
      {.op = "DynamicPartition",
       .shapes = {{4, 2}, {4}},
       .attrs = {{"num_partitions", 2}},
       .fixed = {{1, ints({1, 0, 1, 1})}},
       .output = 1},
      {.op = "Unique", .shapes = {{4}}},
      {.op = "RandomShuffle", .shapes = {matrix}, .attrs = {{"seed", 1}}},
      {.op = "ParallelDynamicStitch",
       .shapes = {{2}, {1}, {2, 3}, {1, 3}},
       .attrs = {{"N", 2}},
       .fixed = {{0, ints({0, 2})}, {1, ints({1})}}},
      {.op = "GatherNd",
       .shapes = {{3, 4, 2}, {3, 2}},
       .fixed = {{1, ints({3, 2}, {0, 1, 2, 3, 0, 1})}}},
      {.op = "ListDiff", .shapes = {{6}, {2}}},
      {.op = "ScatterNd",
       .shapes = {{3, 1}, {3, 2}, {2}},
       .fixed = {{0, ints({3, 1}, {2, 0, 2})}, {2, ints({3, 2})}}},
      {.op = "ScatterNd",
       .shapes = {{2, 2}, {2}, {2}},
       .fixed = {{0, ints({2, 2}, {0, 1, 1, 0})}, {2, ints({2, 3})}}},
      {.op = "EnsureShape", .shapes = {matrix}, .attrs = {{"shape", Shape{any, 4}}}},
      {.op = "Print", .shapes = {matrix, {2}}, .attrs = {{"first_n", 0}}, .no_gradient = {1}},
      {.op = "Diag", .shapes = {{2, 3}}},
      {.op = "DiagPart", .shapes = {{2, 3, 2, 3}}},
      {.op = "MatrixDiagPart", .shapes = {{2, 3, 4}}},
      {.op = "MatrixDiag", .shapes = {matrix}},
      {.op = "MatrixSetDiag", .shapes = {{2, 3, 4}, {2, 3}}},
      {.op = "MatrixDiagPartV2",
       .shapes = {{2, 3, 4}, {2}, {}},
       .fixed = {{1, ints({-1, 1})}, {2, Tensor::scalar(0.0f)}}},
      {.op = "MatrixDiagPartV3",
       .shapes = {{2, 3, 4}, {2}, {}},
       .fixed = {{1, ints({-1, 1})}, {2, Tensor::scalar(0.0f)}}},
      {.op = "MatrixDiagPartV3",
       .shapes = {{3, 4}, {}, {}},
       .attrs = {{"align", "LEFT_RIGHT"}},
       .fixed = {{1, Tensor::scalar(-1)}, {2, Tensor::scalar(0.0f)}}},
      {.op = "MatrixDiagV2",
       .shapes = {matrix, {}, {}, {}, {}},
       .fixed = {{1, Tensor::scalar(1)},
                 {2, Tensor::scalar(-1)},
                 {3, Tensor::scalar(-1)},
                 {4, Tensor::scalar(0.0f)}}},
      {.op = "MatrixDiagV3",
       .shapes = {{2, 2, 4}, {2}, {}, {}, {}},
       .fixed = {{1, ints({0, 1})},
                 {2, Tensor::scalar(4)},
                 {3, Tensor::scalar(4)},
                 {4, Tensor::scalar(0.0f)}}},
      {.op = "MatrixSetDiagV2",
       .shapes = {{2, 3, 4}, {2, 3}, {}},
       .fixed = {{2, Tensor::scalar(1)}}},
      {.op = "MatrixSetDiagV3",
       .shapes = {{2, 3, 4}, {2, 2, 3}, {2}},
       .fixed = {{2, ints({0, 1})}}},
      {.op = "MatrixBandPart",
       .shapes = {{2, 3, 4}, {}, {}},
       .fixed = {{1, Tensor::scalar<int64_t>(1)}, {2, Tensor::scalar<int64_t>(0)}}},
      {.op = "UniqueWithCounts", .shapes = {{4}}},
      {.op = "UniqueV2", .shapes = {{2, 4}, {1}}, .fixed = {{1, longs({1})}}},
      {.op = "ReverseSequence",
       .shapes = {{3, 4, 2}, {3}},
       .attrs = {{"seq_dim", 1}},
       .fixed = {{1, ints({0, 4, 2})}}},
      {.op = "Roll",
       .shapes = {{3, 4}, {2}, {2}},
       .fixed = {{1, ints({1, -6})}, {2, ints({0, 1})}}},
      {.op = "LinSpace", .shapes = {{}, {}, {}}, .fixed = {{2, Tensor::scalar(5)}}},
      {.op = "Cross", .shapes = {{2, 3}, {2, 3}}},
      {.op = "TensorScatterUpdate",
       .shapes = {matrix, {2, 1}, {2, 4}},
       .fixed = {{1, ints({2, 1}, {2, 0})}}},
      {.op = "TensorScatterAdd",
       .shapes = {matrix, {3, 2}, {3}},
       .fixed = {{1, ints({3, 2}, {2, 0, 2, 0, 1, 3})}}},
      {.op = "ScatterNdNonAliasingAdd",
       .shapes = {matrix, {3, 2}, {3}},
       .fixed = {{1, ints({3, 2}, {2, 0, 2, 0, 1, 3})}}},
      {.op = "TensorScatterSub",
       .shapes = {matrix, {2, 1}, {2, 4}},
       .fixed = {{1, ints({2, 1}, {2, 2})}}},
      {.op = "TensorScatterMin",
       .shapes = {matrix, {3, 1}, {3, 4}},
       .fixed = {{1, ints({3, 1}, {2, 0, 2})}}},
      {.op = "TensorScatterMax",
       .shapes = {matrix, {3, 2}, {3}},
       .fixed = {{1, ints({3, 2}, {2, 0, 2, 0, 1, 3})}}},
      {.op = "Einsum", .shapes = {{2, 3, 4}, {4, 5}}, .attrs = {{"equation", "bij,jk->bik"}}},
      {.op = "Einsum", .shapes = {{2, 3, 4}, {2, 5, 4}}, .attrs = {{"equation", "bqd,bkd->bqk"}}},
      {.op = "Einsum", .shapes = {{2, 3, 4}, {3, 2}}, .attrs = {{"equation", "abc,ba->ca"}}},
      {.op = "Einsum",
       .shapes = {{2, 3, 4}, {3, 5}},
       .attrs = {{"equation", "abc,be->ec"}}},  // a is summed
      {.op = "Einsum", .shapes = {{3, 3}}, .attrs = {{"equation", "ii->"}}},
      {.op = "Einsum", .shapes = {{3}}, .attrs = {{"equation", "i->ii"}}},
      {.op = "Einsum",
       .shapes = {{2, 1, 3, 4}, {5, 4, 2}},
       .attrs = {{"equation", "...ij,...jk->...ik"}}},
      {.op = "SparseToDense",
       .shapes = {{3, 2}, {2}, {3}, {}},
       .fixed = {{0, ints({3, 2}, {0, 1, 1, 0, 1, 2})}, {1, ints({2, 3})}}},
      {.op = "SparseReorder",
       .shapes = {{3, 2}, {3}, {2}},
       .fixed = {{0, longs({3, 2}, {1, 2, 0, 1, 1, 0})}, {2, longs({2, 3})}},
       .output = 1},
      {.op = "SparseFillEmptyRows",
       .shapes = {{2, 2}, {2}, {2}, {}},
       .fixed = {{0, longs({2, 2}, {2, 0, 0, 1})}, {2, longs({4, 2})}},
       .output = 1},
      {.op = "RaggedGather",
       .shapes = {{3}, {4}, {4, 2}, {3}},
       .attrs = {{"OUTPUT_RAGGED_RANK", 2}},
       .fixed = {{0, longs({0, 1, 3})}, {1, longs({0, 1, 1, 4})}, {3, ints({1, 0, 1})}},
       .output = 2},
      {.op = "RaggedTensorToSparse",
       .shapes = {{3}, {4, 2}},
       .fixed = {{0, longs({0, 3, 4})}},
       .output = 1},
      {.op = "RaggedTensorToTensor",
       .shapes = {{3}, {4, 2}, {2}, {4}},
       .attrs = {{"row_partition_types", std::vector<std::string>{"ROW_SPLITS"}}},
       .fixed = {{0, longs({-1, 2, 2})}, {3, longs({0, 3, 3, 4})}},
       .needs_rank = true},
      {.op = "RaggedTensorToTensor",
       .shapes = {{3}, {4, 2}, {}, {}, {4}},
       .attrs = {{"row_partition_types",
                  std::vector<std::string>{"FIRST_DIM_SIZE", "VALUE_ROWIDS"}}},
       .fixed = {{0, longs({-1, -1, -1})},
                 {3, Tensor::scalar<int64_t>(3)},
                 {4, longs({0, 0, 2, 2})}},
       .needs_rank = true},
      {.op = "SparseTensorDenseAdd",
       .shapes = {{3, 2}, {3}, {2}, {2, 3}},
       .fixed = {{0, longs({3, 2}, {1, 2, 0, 1, 1, 2})}, {2, longs({2, 3})}}},
      {.op = "SparseTensorDenseMatMul",
       .shapes = {{3, 2}, {3}, {2}, {4, 2}},
       .fixed = {{0, longs({3, 2}, {0, 1, 1, 0, 1, 3})}, {2, longs({2, 4})}}},
      {.op = "SparseTensorDenseMatMul",
       .shapes = {{3, 2}, {3}, {2}, {3, 2}},
       .attrs = {{"adjoint_a", true}, {"adjoint_b", true}},
       .fixed = {{0, longs({3, 2}, {0, 1, 1, 0, 1, 3})}, {2, longs({2, 4})}}},
      {.op = "SparseAdd",
       .shapes = {{2, 2}, {2}, {2}, {2, 2}, {2}, {2}, {}},
       .fixed = {{0, longs({2, 2}, {0, 1, 1, 0})},
                 {2, longs({2, 3})},
                 {3, longs({2, 2}, {0, 1, 1, 2})},
                 {5, longs({2, 3})},
                 {6, Tensor::scalar(0.0F)}},
       .output = 1},
      {.op = "SparseSlice",
       .shapes = {{3, 2}, {3}, {2}, {2}, {2}},
       .fixed = {{0, longs({3, 2}, {0, 1, 1, 0, 1, 2})},
                 {2, longs({2, 3})},
                 {3, longs({0, 1})},
                 {4, longs({2, 2})}},
       .output = 1},
      {.op = "SparseReduceSum",
       .shapes = {{4, 2}, {4}, {2}, {1}},
       .fixed = {{0, longs({4, 2}, {0, 1, 1, 0, 1, 2, 0, 0})},
                 {2, longs({3, 4})},
                 {3, ints({-1})}}},
      {.op = "SparseReduceSum",
       .shapes = {{4, 2}, {4}, {2}, {}},
       .attrs = {{"keep_dims", true}},
       .fixed = {{0, longs({4, 2}, {0, 1, 1, 0, 1, 2, 0, 0})},
                 {2, longs({3, 4})},
                 {3, Tensor::scalar(0)}}},
      {.op = "SparseSoftmax",
       .shapes = {{4, 2}, {4}, {2}},
       .fixed = {{0, longs({4, 2}, {0, 1, 0, 2, 1, 0, 1, 3})}, {2, longs({3, 4})}}},
      {.op = "SparseDenseCwiseMul",
       .shapes = {{3, 2}, {3}, {2}, {3}},
       .fixed = {{0, longs({3, 2}, {0, 1, 1, 1, 1, 2})}, {2, longs({2, 3})}}},
      {.op = "SparseDenseCwiseMul",
       .shapes = {{3, 2}, {3}, {2}, {2, 1}},
       .fixed = {{0, longs({3, 2}, {0, 1, 1, 1, 1, 2})}, {2, longs({2, 3})}}},
      {.op = "SparseDenseCwiseDiv",
       .shapes = {{3, 2}, {3}, {2}, {2, 3}},
       .fixed = {{0, longs({3, 2}, {0, 1, 1, 1, 1, 2})}, {2, longs({2, 3})}},
       .low = 0.5,
       .high = 3},
      {.op = "SparseSegmentSum",
       .shapes = {{3, 2}, {4}, {4}},
       .fixed = {{1, ints({2, 0, 2, 1})}, {2, ints({0, 0, 0, 2})}}},
      {.op = "SparseSegmentMean",
       .shapes = {{3, 2}, {4}, {4}},
       .fixed = {{1, ints({2, 0, 2, 1})}, {2, ints({0, 0, 0, 2})}}},
      {.op = "SparseSegmentSqrtN",
       .shapes = {{3, 2}, {4}, {4}},
       .fixed = {{1, ints({2, 0, 2, 1})}, {2, ints({0, 0, 0, 2})}}},
      {.op = "SparseSegmentSumWithNumSegments",
       .shapes = {{3, 2}, {2}, {2}, {}},
       .fixed = {{1, ints({2, 0})}, {2, ints({0, 2})}, {3, Tensor::scalar(4)}}},
      {.op = "SparseSegmentMeanWithNumSegments",
       .shapes = {{3, 2}, {2}, {2}, {}},
       .fixed = {{1, ints({2, 0})}, {2, ints({0, 2})}, {3, Tensor::scalar(4)}}},
      {.op = "SparseSegmentSqrtNWithNumSegments",
       .shapes = {{3, 2}, {2}, {2}, {}},
       .fixed = {{1, ints({2, 0})}, {2, ints({0, 2})}, {3, Tensor::scalar(4)}}},
      {.op = "SparseSegmentMeanGradV2",
       .shapes = {{3, 2}, {4}, {4}, {}},
       .fixed = {{1, ints({2, 0, 2, 1})}, {2, ints({0, 0, 0, 2})}, {3, Tensor::scalar(5)}}},
      {.op = "MatrixTriangularSolve", .shapes = {{2, 3, 3}, {2, 3, 2}}, .low = 0.5},
      {.op = "MatrixTriangularSolve",
       .shapes = {{3, 3}, {2, 3, 1}},
       .attrs = {{"lower", false}, {"adjoint", true}},
       .low = 0.5},
      {.op = "MatrixSolve", .shapes = {{3, 3}, {3, 2}}, .fixed = {}, .tolerance = 1e-4},
      {.op = "MatrixSolve",
       .shapes = {{3, 3}, {3, 2}},
       .attrs = {{"adjoint", true}},
       .tolerance = 1e-4},
      {.op = "Cholesky",
       .shapes = {{2, 2, 2}},
       .fixed = {{0, Tensor::of<float>({2, 2, 2}, {4, 1, 1, 3, 2, 0.5F, 0.5F, 1})}}},
      {.op = "MatrixInverse", .shapes = {{2, 2, 2}}, .tolerance = 1e-4},
      {.op = "MatrixInverse", .shapes = {{2, 2}}, .attrs = {{"adjoint", true}}, .tolerance = 1e-4},
      {.op = "MatrixDeterminant", .shapes = {{2, 3, 3}}},
      {.op = "LogMatrixDeterminant", .shapes = {{2, 3, 3}}, .output = 1},
      {.op = "Slice",
       .shapes = {matrix, {2}, {2}},
       .fixed = {{1, ints({1, 0})}, {2, ints({2, -1})}}},
      {.op = "StridedSlice",
       .shapes = {matrix, {2}, {2}, {2}},
       .attrs = {{"shrink_axis_mask", 1}},
       .fixed = {{1, ints({1, 3})}, {2, ints({2, 0})}, {3, ints({1, -2})}}},
      {.op = "StridedSliceGrad",
       .shapes = {{2}, {2}, {2}, {2}, {2, 2}},
       .fixed = {{0, ints({3, 4})}, {1, ints({1, 0})}, {2, ints({3, 4})}, {3, ints({1, 2})}}},
      {.op = "DynamicStitch",
       .shapes = {{2}, {1}, {2, 3}, {1, 3}},
       .attrs = {{"N", 2}},
       .fixed = {{0, ints({0, 2})}, {1, ints({1})}}},
      {.op = "Gather", .shapes = {matrix, {2}}, .fixed = {{1, ints({2, 0})}}},
      {.op = "GatherV2",
       .shapes = {matrix, {3}, {}},
       .fixed = {{1, ints({2, 0, 2})}, {2, Tensor::scalar(0)}}},
      {.op = "OneHot",
       .shapes = {{3}, {}, {}, {}},
       .fixed = {{0, ints({0, 2, 1})},
                 {1, Tensor::scalar(3)},
                 {2, Tensor::scalar(1.0f)},
                 {3, Tensor::scalar(0.0f)}}},
      {.op = "InvertPermutation", .shapes = {{3}}, .fixed = {{0, ints({2, 0, 1})}}},
      {.op = "BroadcastGradientArgs",
       .shapes = {{2}, {3}},
       .fixed = {{0, ints({1, 4})}, {1, ints({2, 3, 1})}}},
      {.op = "IdentityN", .shapes = {matrix, {2}}, .no_gradient = {1}},  // it goes to output 1
      {.op = "PlaceholderWithDefault", .shapes = {matrix}, .attrs = {{"shape", matrix}}},
  };
  add_pools(rows);
  for (std::string op :
       {"AddV2", "Sub", "Mul", "Add", "Maximum", "Minimum", "SquaredDifference", "Equal", "Less"}) {
    rows.push_back({.op = op, .shapes = {matrix, matrix}});
    rows.push_back({.op = op, .shapes = {matrix, {4}}});
    rows.push_back({.op = op, .shapes = {{2, 3, 1}, {1, 4}}});
    rows.push_back({.op = op, .shapes = {{}, {2, 2}}});
    rows.push_back({.op = op, .shapes = {{5}, {1}}});
  }
  for (std::string kind : {"Sum", "Mean", "Prod", "Min", "Max"}) {
    rows.push_back({.op = "Segment" + kind,
                    .shapes = {{4, 2}, {4}},
                    .fixed = {{1, ints({0, 0, 2, 2})}},
                    .low = -20,  // so that no two are equal
                    .high = 20});
    if (kind == "Mean") continue;
    rows.push_back({.op = "UnsortedSegment" + kind,
                    .shapes = {matrix, {3}, {}},
                    .fixed = {{1, ints({1, 0, 1})}, {2, Tensor::scalar(2)}},
                    .low = -20,
                    .high = 20,
                    .needs_rank = true});
  }
  for (std::string op : {"Sum", "Mean", "Max", "Min", "Prod", "EuclideanNorm"}) {
    rows.push_back({.op = op, .shapes = {{2, 3, 4}, {1}}, .fixed = {{1, ints({1})}}});
    rows.push_back({.op = op, .shapes = {{2, 3, 4}, {2}}, .fixed = {{1, ints({-1, 0})}}});
    rows.push_back({.op = op, .shapes = {matrix, {1}}, .fixed = {{1, ints({0})}}});
    rows.push_back({.op = op, .shapes = {matrix, {2}}, .fixed = {{1, ints({0, 1})}}});
    rows.push_back({.op = op,
                    .shapes = {matrix, {1}},
                    .attrs = {{"keep_dims", true}},
                    .fixed = {{1, ints({1})}}});
    rows.push_back({.op = op, .shapes = {matrix, {0}}, .fixed = {{1, ints({})}}});
    if (op == "Prod") {
      for (Row& row : rows) row.low = row.op == op ? 0.5 : row.low;
    }
  }
  return rows;
}

// Numbers in [0, 1) that are the same on every machine.
class Numbers {
 public:
  double next() {
    state_ = state_ * 6364136223846793005u + 1442695040888963407u;
    return static_cast<double>(state_ >> 11) / 9007199254740992.0;
  }

 private:
  uint64_t state_ = 20250101;
};

bool is_unsigned(DType dtype) {
  return dtype == u8 || dtype == u16 || dtype == u32 || dtype == u64;
}

}  // namespace

std::vector<Row> rows_for(const OpDef& op) {
  static const std::vector<Row> all = table();
  std::vector<Row> found;
  for (const Row& row : all) {
    if (row.op == op.name) found.push_back(row);
  }
  if (!found.empty()) return found;
  const size_t num_inputs = op.schema.inputs.size();
  if (num_inputs < 1 || num_inputs > 2) return {};
  for (const ArgDef& input : op.schema.inputs) {
    if (input.type_attr != "T" || input.is_list() || input.is_ref) return {};
  }
  for (const AttrDef& attr : op.schema.attrs) {
    if (attr.name != "T" && !attr.default_value) return {};
  }
  return {{.op = op.name, .shapes = std::vector<Shape>(num_inputs, matrix)}};
}

std::vector<Tensor> inputs_of(const Row& row, DType dtype) {
  Numbers numbers;
  std::vector<Tensor> inputs;
  for (int i = 0; i < static_cast<int>(row.shapes.size()); ++i) {
    const auto fixed = row.fixed.find(i);
    if (fixed != row.fixed.end()) {
      const Tensor& value = fixed->second;
      inputs.push_back(value.dtype() == f32 ? from_doubles(dtype, value.shape(), to_doubles(value))
                                            : value);
      continue;
    }
    std::vector<double> values(row.shapes[i].elements());
    for (double& value : values) {
      value = row.low + (row.high - row.low) * numbers.next();
      for (double kink : row.avoid) {
        if (std::abs(value - kink) < 0.1) value = kink + (value < kink ? -0.1 : 0.1);
      }
      if (is_integer(dtype)) value = std::round(is_unsigned(dtype) ? std::abs(value) : value);
    }
    inputs.push_back(from_doubles(dtype, row.shapes[i], values));
  }
  return inputs;
}

}  // namespace leat
