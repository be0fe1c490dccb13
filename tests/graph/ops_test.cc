// Builder functions: numbers as operands, and the line that errors report.
#include "graph/ops.h"

#include <gtest/gtest.h>

#include "graph/text.h"
#include "tests/support/expect_error.h"

namespace leat {
namespace {

class Operators : public testing::Test {
 protected:
  Output value(std::string name, DType dtype, Shape shape = {}) {
    return placeholder(graph_, name, dtype, shape);
  }
  Graph graph_;
};

TEST_F(Operators, MakeTheOpsOfTensorFlow) {
  const Output x = value("x", f32), y = value("y", f32), n = value("n", i32),
               s = value("s", DType::string);
  EXPECT_TRUE((x + y).node->is("AddV2"));
  EXPECT_TRUE((x - y).node->is("Sub"));
  EXPECT_TRUE((x * y).node->is("Mul"));
  EXPECT_TRUE((x / y).node->is("RealDiv"));
  EXPECT_TRUE((n % n).node->is("FloorMod"));
  EXPECT_TRUE((-x).node->is("Neg"));
  EXPECT_TRUE((s + s).node->is("Add"));
}

TEST_F(Operators, NumbersBecomeConstantsLikeTheOtherOperand) {
  const Output x = value("x", f64);
  const Output y = 2 * x;
  ASSERT_TRUE(y.node->inputs[0].node->is("Const"));
  EXPECT_EQ(AttrValue(y.node->inputs[0].node->attr<Tensor>("value")),
            AttrValue(Tensor::scalar(2.0)));
  const Output half_of = value("h", f16) * 0.5f;
  EXPECT_EQ(half_of.node->inputs[1].dtype(), f16);
  const Output n = value("n", i64) - 3;
  EXPECT_EQ(n.node->inputs[1].node->attr<Tensor>("value").item<int64_t>(), 3);
}

TEST_F(Operators, NumbersMustFitTheDtype) {
  const Output n = value("n", i32), u = value("u", u8), s = value("s", DType::string);
  const auto expect = [](auto make, std::string_view number, std::string_view dtype, int line) {
    expect_error(
        make, Code::invalid_argument,
        concat("the number ", number, " (", __FILE__, ":", line, ") cannot be a constant of dtype ",
               dtype, ", the dtype of the other operand"));
  };
  expect([&] { n * 0.5; }, "0.5", "int32", __LINE__);
  expect([&] { u + 256; }, "256", "uint8", __LINE__);
  expect([&] { u - -1; }, "-1", "uint8", __LINE__);
  expect_error([&] { s + 1; }, Code::invalid_argument,
               concat("the number 1 (", __FILE__, ":", __LINE__ - 1,
                      ") cannot be combined with 's:0', whose dtype is string"));
}

TEST_F(Operators, ReportTheLineOfTheExpression) {
  const Output x = value("x", f32, {2}), y = value("y", f32, {3});
  expect_error([&] { x + y; }, Code::invalid_argument,
               concat("AddV2 node 'AddV2' (", __FILE__, ":", __LINE__ - 1,
                      "): Incompatible shapes: [2] vs. [3]; inputs: x: float[2], y: float[3]"));
  EXPECT_EQ((x * x).node->location.line, __LINE__);
}

TEST_F(Operators, OpByNameReportsItsLineAndMistakes) {
  const Output x = value("x", f32, {2});
  EXPECT_EQ(op("Identity", {x}).node->location.line, __LINE__);
  expect_error([&] { op("NoOp", {}); }, Code::invalid_argument,
               concat("op 'NoOp' (", __FILE__, ":", __LINE__ - 1,
                      ") has no input to take the graph from: use op_node(graph, …)"));
  EXPECT_EQ(op_node(graph_, "NoOp", {}).name, "NoOp");
  for (const auto& action : std::initializer_list<void (*)()>{
           [] { relu(Output{}); }, [] { identity_n({Output{}}); }, [] { add_n({Output{}}); }}) {
    expect_error_with(Code::invalid_argument, "is given an empty Output", action);
  }
}

}  // namespace
}  // namespace leat
