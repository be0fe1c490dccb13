// What constant_value() finds without running a graph, and what is known of a shape in part.
#include <gtest/gtest.h>

#include "graph/shape_inference.h"
#include "graph/text.h"

namespace leat {
namespace {

// Checks constant_value() of the last line, and the shape that it stands for. x is float[?,3,4], y
// is float[2,3,4].
class ConstantValue : public testing::Test {
 protected:
  Output last(const std::string& text) {
    graphs_.push_back(
        parse("x = Placeholder(dtype=float, shape=[?,3,4])\n"
              "y = Placeholder(dtype=float, shape=[2,3,4])\n"
              "sx = Shape(x); sy = Shape(y)\n"
              "zero = Const(dtype=int32, value=int32[] [0])\n"
              "one = Const(dtype=int32, value=int32[] [1])\n"
              "v0 = Const(dtype=int32, value=int32[1] [0])\n"
              "v1 = Const(dtype=int32, value=int32[1] [1])\n"
              "v2 = Const(dtype=int32, value=int32[1] [2])\n" +
              text));
    return graphs_.back().nodes().back()->output();
  }
  void expect(const std::string& text, const Tensor& value) {
    const Tensor got = constant_value(last(text));
    EXPECT_EQ(AttrValue(got), AttrValue(value)) << text << "\n" << got << "\n" << value;
  }
  void expect_shape(const std::string& text, const Shape& shape) {
    EXPECT_EQ(constant_value_as_shape(last(text)), shape) << text;
  }
  static Tensor vector(std::initializer_list<int32_t> values) {
    return Tensor::of<int32_t>({static_cast<int64_t>(values.size())}, values);
  }
  static Tensor scalar(int32_t value) { return Tensor::scalar<int32_t>(value); }

  std::vector<Graph> graphs_;
};

TEST_F(ConstantValue, ReadsConstantsAndCompleteShapes) {
  expect("c = Const(dtype=float, value=float[2,1] [1, 2])", Tensor::of<float>({2, 1}, {1, 2}));
  expect("s = Shape(y)", vector({2, 3, 4}));
  expect("s = Shape(y, out_type=int64)", Tensor::of<int64_t>({3}, {2, 3, 4}));
  expect("s = Identity(sy)", vector({2, 3, 4}));
  expect("s = Size(y)", scalar(24));
  expect("r = Rank(x)", scalar(3));
  expect("s = Shape(x)", Tensor());
  expect("s = Size(x)", Tensor());
  expect("f = Identity(y)", Tensor());
}

TEST_F(ConstantValue, ComputesSlices) {
  const std::string range = "StridedSlice(sy, v0, v2, v1";
  expect("s = " + range + ")", vector({2, 3}));
  expect("s = " + range + ", begin_mask=1, end_mask=1)", vector({2, 3, 4}));
  expect("s = " + range + ", shrink_axis_mask=1)", scalar(2));
  expect("m = Const(dtype=int32, value=int32[1] [-1])\ns = StridedSlice(sy, m, v0, m)",
         vector({4, 3}));
  expect(
      "m = Const(dtype=int32, value=int32[1] [-1])\ns = StridedSlice(sy, m, v0, m, begin_mask=1, "
      "end_mask=1)",
      vector({4, 3, 2}));
  expect(
      "m = Const(dtype=int32, value=int32[1] [-1])\ns = StridedSlice(sx, m, v0, v1, "
      "shrink_axis_mask=1)",
      scalar(4));
  expect("s = StridedSlice(sx, v0, v1, v1, shrink_axis_mask=1)", Tensor());
}

TEST_F(ConstantValue, ComputesArithmetic) {
  expect("a = Mul(sy, sy)", vector({4, 9, 16}));
  expect("a = Sub(sy, one)", vector({1, 2, 3}));
  expect("a = AddV2(one, one)", scalar(2));
  expect("l = Const(dtype=int32, value=int32[] [2000000000]); a = AddV2(l, l)",
         Tensor());  // does not fit int32
  expect("a = Cast(sy, DstT=int64)", Tensor::of<int64_t>({3}, {2, 3, 4}));
  expect("a = Prod(sy, v0)", scalar(24));
  expect("a = Prod(sy, v0, keep_dims=true)", vector({24}));
  expect("a = Maximum(v0, v2)", vector({2}));
}

TEST_F(ConstantValue, ComputesShapesBuiltFromParts) {
  expect("a = Pack(one, zero)", vector({1, 0}));
  expect("a = ConcatV2(sy, v1, zero)", vector({2, 3, 4, 1}));
  expect("a = ExpandDims(one, zero)", vector({1}));
  expect("a = Squeeze(v2)", scalar(2));
  expect("a = Reshape(one, v1)", vector({1}));
  expect("a = Fill(v2, one)", vector({1, 1}));
}

TEST_F(ConstantValue, KeepsKnownExtentsOfPartialShapes) {
  expect_shape("s = Shape(x)", {any, 3, 4});
  expect_shape("b = StridedSlice(sx, v0, v1, v1, shrink_axis_mask=1); a = Pack(b, one)", {any, 1});
  expect_shape("a = ConcatV2(sx, v2, zero)", {any, 3, 4, 2});
  expect_shape("p = Placeholder(dtype=int32, shape=[2])", {any, any});
  expect_shape("p = Placeholder(dtype=int32, shape=[2]); a = ConcatV2(sx, p, zero)",
               {any, 3, 4, any, any});
  expect_shape("p = Placeholder(dtype=int32, shape=[?])", Shape::unknown());
  expect_shape("m = Const(dtype=int32, value=int32[2] [-1,12])", {any, 12});
}

TEST_F(ConstantValue, ReachesShapeFunctions) {
  EXPECT_EQ(last("b = StridedSlice(sx, v0, v1, v1, shrink_axis_mask=1)\n"
                 "t = Const(dtype=int32, value=int32[] [12])\n"
                 "shape = Pack(b, t)\n"
                 "r = Reshape(x, shape)")
                .shape(),
            (Shape{any, 12}));
}

TEST_F(ConstantValue, IgnoresVariables) {
  expect("v = VariableV2(dtype=int32, shape=[]); i = Identity(v)", Tensor());
}

TEST_F(ConstantValue, EndsInReasonableTimeOnDeepGraphs) {
  std::string text = "n0 = AddV2(one, one)\n";
  for (int i = 1; i < 500; ++i) {
    const std::string before = "n" + std::to_string(i - 1);
    text += "n" + std::to_string(i) + " = Maximum(" + before + ", " + before + ")\n";
  }
  EXPECT_FALSE(constant_value(last(text)).is_valid());  // too deep, but the call returns
}

}  // namespace
}  // namespace leat
