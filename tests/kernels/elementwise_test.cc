// Corner cases of elementwise ops that the table of every_op_test does not reach: broadcasting of
// any shape, threads, NaN, integers, strings, and rejected inputs.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "kernels/broadcast.h"
#include "kernels/examples.h"
#include "tests/support/run_op.h"

namespace leat {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

const float nan = std::numeric_limits<float>::quiet_NaN();

template <class T>
std::vector<T> elements(const Tensor& tensor) {
  return {tensor.span<T>().begin(), tensor.span<T>().end()};
}

std::string message_of(std::string_view op, const std::vector<Tensor>& inputs,
                       const AttrMap& attrs = {}) {
  try {
    run_op(op, inputs, attrs);
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), Code::invalid_argument);
    return error.message();
  }
  return "no error";
}

Tensor counting(const Shape& shape, float first) {
  Tensor out(f32, shape);
  for (float& value : out.span<float>()) value = first++;
  return out;
}

TEST(BroadcastPlan, MergesAxesThatBehaveAlike) {
  const auto rank = [](const Shape& output, std::vector<Shape> inputs) {
    return plan_broadcast(output, inputs).rank;
  };
  EXPECT_EQ(rank({2, 3, 4}, {{2, 3, 4}, {2, 3, 4}}), 1);
  EXPECT_EQ(rank({2, 3, 4}, {{2, 3, 4}, {}}), 1);
  EXPECT_EQ(rank({2, 3, 4}, {{2, 3, 4}, {4}}), 2);
  EXPECT_EQ(rank({2, 3, 4}, {{2, 3, 4}, {3, 4}}), 2);
  EXPECT_EQ(rank({2, 3, 4}, {{2, 3, 4}, {2, 1, 1}}), 2);
  EXPECT_EQ(rank({2, 3, 4}, {{2, 3, 4}, {2, 1, 4}}), 3);
  EXPECT_EQ(rank({1, 1}, {{1, 1}, {}}), 1);
}

// The value at each index, computed the slow way.
float at(const Tensor& tensor, const Shape& output, int64_t index) {
  int64_t offset = 0, step = 1;
  for (int back = 1; back <= output.rank(); ++back) {
    const int64_t position = index % output[output.rank() - back];
    index /= output[output.rank() - back];
    if (back > tensor.shape().rank()) continue;
    const int64_t extent = tensor.shape()[tensor.shape().rank() - back];
    if (extent > 1) offset += position * step;
    step *= extent;
  }
  return tensor.data<float>()[offset];
}

TEST(Broadcasting, AgreesWithIndexArithmeticForAnyShapeAndThreads) {
  const std::vector<std::pair<Shape, Shape>> shapes = {{{3, 4}, {3, 4}},
                                                       {{3, 4}, {4}},
                                                       {{4}, {3, 4}},
                                                       {{3, 1}, {1, 4}},
                                                       {{}, {5}},
                                                       {{2, 3, 4}, {2, 1, 4}},
                                                       {{2, 3, 4}, {3, 1}},
                                                       {{2, 1, 3, 1, 2}, {4, 1, 5, 1}},
                                                       {{0, 3}, {1, 3}},
                                                       {{1}, {1, 1}},
                                                       {{700, 300}, {300}},
                                                       {{700, 300}, {700, 1}},
                                                       {{210000}, {210000}},
                                                       {{210001}, {}},
                                                       {{3, 70000}, {3, 1}}};
  for (const auto& [a, b] : shapes) {
    for (int threads : {1, 3}) {
      const Tensor x = counting(a, 1), y = counting(b, 0.5f);
      const Tensor z = run_op("Sub", {x, y}, {}, test_cpu(threads))[0];
      ASSERT_EQ(z.shape(), broadcast(a, b));
      for (int64_t i = 0; i < z.elements(); ++i) {
        ASSERT_EQ(z.data<float>()[i], at(x, z.shape(), i) - at(y, z.shape(), i))
            << a << " - " << b << " at " << i << ", " << threads << " threads";
      }
    }
  }
}

TEST(Broadcasting, RejectsIncompatibleShapes) {
  EXPECT_THAT(message_of("AddV2", {floats({1, 2}), floats({1, 2, 3})}),
              HasSubstr("Incompatible shapes: [2] vs. [3]"));
}

TEST(Elementwise, PropagatesNaN) {
  for (const char* op : {"Maximum", "Minimum"}) {
    EXPECT_TRUE(std::isnan(run_op(op, {floats({nan}), floats({1})})[0].data<float>()[0])) << op;
    EXPECT_TRUE(std::isnan(run_op(op, {floats({1}), floats({nan})})[0].data<float>()[0])) << op;
  }
  for (const char* op : {"Relu", "Exp", "Log", "Tanh", "Sigmoid", "Sign", "Abs", "Sqrt"}) {
    const Tensor y = run_op(op, {floats({nan, 1, nan})})[0];
    EXPECT_TRUE(std::isnan(y.data<float>()[0]) && !std::isnan(y.data<float>()[1])) << op;
  }
  EXPECT_THAT(elements<bool>(run_op("Equal", {floats({nan}), floats({nan})})[0]),
              ElementsAre(false));
  EXPECT_THAT(elements<bool>(run_op("NotEqual", {floats({nan}), floats({nan})})[0]),
              ElementsAre(true));
}

TEST(Elementwise, ExpAndLogReachTheirLimits) {
  const float infinity = std::numeric_limits<float>::infinity();
  EXPECT_THAT(elements<float>(run_op("Exp", {floats({-infinity, -200, 200, infinity})})[0]),
              ElementsAre(0, 0, infinity, infinity));
  EXPECT_THAT(elements<float>(run_op("Log", {floats({0, infinity})})[0]),
              ElementsAre(-infinity, infinity));
}

TEST(Elementwise, IntegersDivideAsTensorFlowDoes) {
  const Tensor x = ints({7, -7, 7, -7, INT32_MIN}), y = ints({2, 2, -2, -2, -1});
  EXPECT_THAT(elements<int32_t>(run_op("Div", {x, y})[0]), ElementsAre(3, -3, -3, 3, INT32_MIN));
  EXPECT_THAT(elements<int32_t>(run_op("FloorDiv", {x, y})[0]),
              ElementsAre(3, -4, -4, 3, INT32_MIN));
  EXPECT_THAT(elements<int32_t>(run_op("FloorMod", {x, y})[0]), ElementsAre(1, 1, -1, -1, 0));
  for (const char* op : {"Div", "FloorDiv", "FloorMod"}) {
    EXPECT_THAT(message_of(op, {ints({1, 2}), ints({1, 0})}), HasSubstr("Integer division by zero"))
        << op;
  }
  EXPECT_THAT(message_of("Pow", {ints({2}), ints({-1})}), HasSubstr("negative integer powers"));
}

TEST(Elementwise, RoundsSixteenBitQuotientsBeforeTheFloor) {
  const auto bfloats = [](float x) { return Tensor::of<bfloat16>({1}, {x}); };
  const Tensor x = bfloats(2.04688F), y = bfloats(0.683594F);  // x / y = 2.994, in 16 bits 3
  EXPECT_EQ(to_doubles(run_op("FloorDiv", {x, y})[0]), (std::vector<double>{3}));
  EXPECT_EQ(to_doubles(run_op("TruncateDiv", {x, y})[0]), (std::vector<double>{3}));
}

TEST(Elementwise, TruncatingCastDropsLowBits) {
  const Tensor largest = floats({3.4028235e38F, nan, -1.0117F});
  const auto cast = [&](bool truncates) {
    return to_doubles(
        run_op("Cast", {largest}, {{"DstT", DType::bf16}, {"Truncate", truncates}})[0]);
  };
  EXPECT_EQ(cast(false)[0], std::numeric_limits<double>::infinity());
  EXPECT_EQ(cast(true)[0], 0x1.fep127);
  EXPECT_TRUE(std::isnan(cast(true)[1]));
  EXPECT_EQ(cast(true)[2], -1.0078125);
}

TEST(Elementwise, ErrorOnAnotherThreadReachesTheCaller) {
  Tensor x(i32, {300000}), zeros(i32, {300000});
  std::fill_n(x.data<int32_t>(), x.elements(), 1);
  std::fill_n(zeros.data<int32_t>(), zeros.elements(), 0);
  EXPECT_THROW(run_op("Div", {x, zeros}, {}, test_cpu(3)), Error);
}

TEST(Elementwise, JoinsAndComparesStrings) {
  const Tensor x = Tensor::of<std::string>({2}, {"a", "b"}), y = Tensor::scalar("b");
  EXPECT_THAT(elements<std::string>(run_op("Add", {x, y})[0]), ElementsAre("ab", "bb"));
  EXPECT_THAT(elements<bool>(run_op("Equal", {x, y})[0]), ElementsAre(false, true));
  EXPECT_THAT(
      elements<std::string>(
          run_op("Select", {bools({false, true}), x, Tensor::of<std::string>({2}, {"c", "d"})})[0]),
      ElementsAre("c", "b"));
}

TEST(Elementwise, EqualMayTreatIncompatibleShapesAsUnequal) {
  const AttrMap lenient = {{"incompatible_shape_error", false}};
  const std::vector<Tensor> inputs = {floats({1, 2}), floats({1, 2, 3})};
  EXPECT_EQ(run_op("Equal", inputs, lenient)[0].item<bool>(), false);
  EXPECT_EQ(run_op("NotEqual", inputs, lenient)[0].item<bool>(), true);
  EXPECT_THAT(message_of("Equal", inputs), HasSubstr("Incompatible shapes"));
  EXPECT_THAT(elements<bool>(run_op("Equal", {floats({1, 2}), floats({2})}, lenient)[0]),
              ElementsAre(false, true));
}

TEST(Elementwise, RoundsSixteenBitFloatsOnce) {
  // 1 + 2^-11 lies between two halves; the even one is 1. With 2^-10 more it is 1 + 2^-10.
  const auto halves = [](std::initializer_list<float> values) {
    std::vector<double> wide(values.begin(), values.end());
    return from_doubles(f16, {static_cast<int64_t>(wide.size())}, wide);
  };
  const Tensor sum =
      run_op("AddV2", {halves({1, 65504, 6e-8f}), halves({0.00048828125f, 65504, 6e-8f})})[0];
  EXPECT_THAT(to_doubles(sum), ElementsAre(1, std::numeric_limits<double>::infinity(), 0x1p-23));
}

TEST(AddN, AddsManyInPlace) {
  std::vector<Tensor> inputs;
  for (int i = 0; i < 40; ++i) inputs.push_back(counting({9000}, static_cast<float>(i)));
  Graph graph;
  const Node& node = add_call(graph, "AddN", inputs);
  for (bool in_place : {false, true}) {
    const Tensor sum = run_node(node, inputs, test_cpu(2), {.in_place = in_place})[0];
    for (int64_t i = 0; i < sum.elements(); ++i)
      ASSERT_EQ(sum.data<float>()[i], 780 + 40 * static_cast<float>(i));
  }
}

}  // namespace
}  // namespace leat
