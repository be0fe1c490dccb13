#include <cmath>
#include <limits>

#include "kernels/examples.h"
#include "tests/kernels/row_tables.h"
#include "tests/support/run_op.h"

namespace leat {
namespace {

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

// The gradient is that of the first input alone.
void add_collective_result(std::vector<Row>& rows) {
  rows.push_back({.op = "CollectiveResult",
                  .shapes = {{2, 3}, {2, 3}},
                  .attrs = {{"kind", "all_reduce"},
                            {"is_mean", false},
                            {"group", "g"},
                            {"rank", 0},
                            {"members", 2}},
                  .no_gradient = {1}});
}

// The cells of TensorFlow's ops: a step, and sequences that end early, at their end and beyond it.
void add_recurrent_cells(std::vector<Row>& rows) {
  const auto add = [&](int64_t batch, int64_t inputs, int64_t cells, bool has_peepholes,
                       double largest = 1) {
    const Shape x = {batch, inputs}, state = {batch, cells}, w = {inputs + cells, 4 * cells},
                peephole = {cells}, bias = {4 * cells};
    const AttrMap peepholes = {{"use_peephole", has_peepholes}};
    const std::vector<Shape> cell = {x, state, state, w, peephole, peephole, peephole, bias};
    AttrMap attrs = peepholes;
    attrs["cell_clip"] = 0.6F;
    attrs["forget_bias"] = 0.5F;
    rows.push_back(
        {.op = "LSTMBlockCell", .shapes = cell, .attrs = attrs, .low = -largest, .high = largest});
    std::vector<Shape> gradient = cell;
    gradient.insert(gradient.end(), 8, state);
    rows.push_back({.op = "LSTMBlockCellGrad",
                    .shapes = gradient,
                    .attrs = peepholes,
                    .low = -largest,
                    .high = largest});
    const int64_t time = 4;
    for (const int64_t steps : {int64_t{0}, int64_t{2}, time}) {
      std::vector<Shape> sequence = cell;
      sequence[0] = {time, batch, inputs};
      sequence.insert(sequence.begin(), Shape{});
      // Nobody reads x in the steps that are left out.
      std::vector<double> x(time * batch * inputs, std::numeric_limits<double>::quiet_NaN());
      for (int64_t i = 0; i < steps * batch * inputs; ++i)
        x[i] = largest * std::sin(static_cast<double>(i));
      const std::map<int, Tensor> fixed = {{0, Tensor::scalar(steps)},
                                           {1, from_doubles(f32, sequence[1], x)}};
      for (const char* op : {"BlockLSTM", "BlockLSTMV2"}) {
        AttrMap of_sequence = attrs;
        if (std::string_view(op) == "BlockLSTMV2") of_sequence.erase("forget_bias");
        rows.push_back({.op = op,
                        .shapes = sequence,
                        .attrs = of_sequence,
                        .fixed = fixed,
                        .low = -largest,
                        .high = largest});
        std::vector<Shape> of_gradient = sequence;
        of_gradient.insert(of_gradient.end(), 9, Shape{time, batch, cells});
        rows.push_back({.op = concat(op).replace(0, 9, "BlockLSTMGrad"),
                        .shapes = of_gradient,
                        .attrs = peepholes,
                        .fixed = fixed,
                        .low = -largest,
                        .high = largest});
      }
    }
    const std::vector<Shape> gru = {
        x, state, {inputs + cells, 2 * cells}, {inputs + cells, cells}, {2 * cells}, {cells}};
    rows.push_back({.op = "GRUBlockCell", .shapes = gru, .low = -largest, .high = largest});
    std::vector<Shape> gru_gradient = gru;
    gru_gradient.insert(gru_gradient.end(), 4, state);
    rows.push_back(
        {.op = "GRUBlockCellGrad", .shapes = gru_gradient, .low = -largest, .high = largest});
  };
  for (const bool has_peepholes : {false, true}) {
    add(3, 2, 2, has_peepholes);
    add(7, 5, 33, has_peepholes, 0.3);
    add(2, 0, 3, has_peepholes);
  }
}

void add_recurrent_layers(std::vector<Row>& rows) {
  const auto add = [&](int64_t time, int64_t batch, int64_t units, AttrMap attrs, Row rest = {}) {
    rest.op = "LstmLayer";
    const Shape state = {batch, units};
    rest.shapes = {{time, batch, 4 * units}, state, state, {units, 4 * units}};
    if (!rest.fixed.empty()) rest.shapes.push_back({batch});
    attrs["N"] = static_cast<int64_t>(rest.fixed.size());
    rest.attrs = std::move(attrs);
    rows.push_back(std::move(rest));
  };
  for (const int output : {0, 1, 2}) {
    add(3, 2, 2, {}, {.output = output});
    add(3, 2, 2, {{"reverse", true}}, {.output = output});
    add(4, 3, 2, {}, {.fixed = {{4, Tensor::of<int32_t>({3}, {4, 0, 2})}}, .output = output});
  }
  add(5, 17, 33, {}, {.low = -0.5, .high = 0.5});
  const Shape y = {3, 2, 4}, gates = {3, 2, 16}, state = {2, 4};
  rows.push_back({.op = "LstmLayerGrad",
                  .shapes = {state, state, {4, 16}, y, gates, y, y, state, state},
                  .attrs = {{"N", 0}}});
  const auto add_gru = [&](AttrMap attrs, Row rest = {}) {
    rest.op = "GruLayer";
    rest.shapes = {{3, 2, 6}, {2, 2}, {2, 6}, {6}};
    if (!rest.fixed.empty()) rest.shapes.push_back({2});
    attrs["N"] = static_cast<int64_t>(rest.fixed.size());
    rest.attrs = std::move(attrs);
    rows.push_back(std::move(rest));
  };
  for (const int output : {0, 1}) {
    add_gru({}, {.output = output});
    add_gru({{"reverse", true}}, {.output = output});
    add_gru({}, {.fixed = {{4, Tensor::of<int32_t>({2}, {1, 3})}}, .output = output});
  }
  rows.push_back({.op = "GruLayer",
                  .shapes = {{5, 17, 99}, {17, 33}, {33, 99}, {99}},
                  .attrs = {{"N", 0}},
                  .low = -0.5,
                  .high = 0.5});
  rows.push_back(
      {.op = "GruLayerGrad", .shapes = {state, {4, 12}, y, gates, y, state}, .attrs = {{"N", 0}}});
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

}  // namespace

std::vector<Row> neural_rows() {
  const Shape matrix = {3, 4};
  std::vector<Row> rows = {
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
      // The derivative by the logits assumes that labels sum to 1; the derivative by the labels
      // does not.
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
      {.op = "BatchNormWithGlobalNormalization",
       .shapes = {{2, 3, 2, 4}, {4}, {4}, {4}, {4}},
       .attrs = {{"variance_epsilon", 0.1F}, {"scale_after_normalization", true}},
       .low = 0.3},
      {.op = "BatchNormWithGlobalNormalization",
       .shapes = {{2, 1, 2, 3}, {3}, {3}, {3}, {3}},
       .attrs = {{"variance_epsilon", 0.1F}, {"scale_after_normalization", false}},
       .low = 0.3,
       .no_gradient = {4}},
      {.op = "ApproxTopK",
       .shapes = {{2, 5}},
       .attrs = {{"k", int64_t{3}}},
       .fixed = {{0, floats({2, 5}, {1, 7, 4, 3, 0, 5, 6, 9, 2, 3})}},
       .needs_rank = true},
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
  };
  add_pools(rows);
  add_recurrent_layers(rows);
  add_recurrent_cells(rows);
  add_collective_result(rows);
  return rows;
}

}  // namespace leat
