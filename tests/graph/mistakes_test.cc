// Every mistake in building a graph, with the complete message.
#include <gtest/gtest.h>

#include "graph/graph.h"
#include "tests/support/expect_error.h"

namespace leat {
namespace {

class Mistake : public testing::Test {
 protected:
  Output value(std::string name, DType dtype = f32, Shape shape = Shape::unknown()) {
    return graph_
        .add({.op = "TestValue",
              .name = std::move(name),
              .attrs = {{"dtype", dtype}, {"shape", shape}}})
        .output();
  }

  // The node is made at model.cc:41.
  void expect(NodeSpec spec, Code code, std::string_view message) {
    spec.location = {"model.cc", 41};
    expect_error([&] { graph_.add(spec); }, code, message);
    EXPECT_EQ(graph_.find(spec.name), nullptr) << "a refused node must not stay in the graph";
  }
  void expect(NodeSpec spec, std::string_view message) {
    expect(std::move(spec), Code::invalid_argument, message);
  }

  Graph graph_;
  Output a_ = value("a", f32, {32, 784});
  Output b_ = value("b", f32, {128, 10});
  Output n_ = value("n", i32, {});
};

TEST_F(Mistake, IncompatibleShapes) {
  expect({.op = "TestMatMul", .name = "logits", .inputs = {a_, b_}},
         "TestMatMul node 'logits' (model.cc:41): extents 784 and 128 differ; "
         "inputs: a: float[32,784], b: float[128,10]");
}

TEST_F(Mistake, WrongRank) {
  expect({.op = "TestMatMul", .name = "logits", .inputs = {a_, value("c", f32, {10})}},
         "TestMatMul node 'logits' (model.cc:41): input b must have rank 2, got [10]; "
         "inputs: a: float[32,784], b: float[10]");
}

TEST_F(Mistake, DisagreeingTypes) {
  expect({.op = "TestMatMul", .name = "logits", .inputs = {a_, value("c", f64, {784, any})}},
         "TestMatMul node 'logits' (model.cc:41): input b must be float like input a, got double: "
         "convert one with cast(); "
         "inputs: a: float[32,784], b: double[784,?]");
  expect({.op = "TestMatMul", .name = "logits", .inputs = {a_, a_}, .attrs = {{"T", f64}}},
         "TestMatMul node 'logits' (model.cc:41): input a must be double like attribute 'T', got "
         "float; "
         "inputs: a: float[32,784], b: float[32,784]");
}

TEST_F(Mistake, TypeNotAllowed) {
  expect({.op = "TestMatMul", .name = "logits", .inputs = {n_, n_}},
         "TestMatMul node 'logits' (model.cc:41): input a: int32 is not one of {float, double}; "
         "inputs: a: int32[], b: int32[]");
  expect({.op = "TestTuple", .name = "t", .inputs = {a_, value("s", DType::string)}},
         "TestTuple node 't' (model.cc:41): list input: string is not one of {float, int32}; "
         "inputs: input[0]: float[32,784], input[1]: string<unknown>");
}

TEST_F(Mistake, WrongFixedType) {
  expect({.op = "TestConcat", .name = "c", .inputs = {a_, a_, b_, a_, a_}},
         "TestConcat node 'c' (model.cc:41): input axis must be int32, got float; inputs: "
         "first[0]: float[32,784], "
         "first[1]: float[32,784], axis: float[128,10], second[0]: float[32,784], second[1]: "
         "float[32,784]");
}

TEST_F(Mistake, WrongNumberOfInputs) {
  expect({.op = "TestMatMul", .name = "m", .inputs = {a_}},
         "TestMatMul node 'm' (model.cc:41): takes 2 inputs, got 1: TestMatMul(a: T, b: T) -> "
         "(product: T); "
         "inputs: a: float[32,784]");
  expect({.op = "TestMatMul", .name = "m", .inputs = {a_, b_, n_}},
         "TestMatMul node 'm' (model.cc:41): takes 2 inputs, got 3: TestMatMul(a: T, b: T) -> "
         "(product: T); "
         "inputs: a: float[32,784], b: float[128,10], #2: int32[]");
  expect({.op = "TestConcat", .name = "c", .inputs = {a_, n_, a_, a_}},
         "TestConcat node 'c' (model.cc:41): takes 1 input and 2 lists of equal length, got 4: "
         "TestConcat(first: N * T, axis: int32, second: N * T) -> (output: T); "
         "inputs: #0: float[32,784], #1: int32[], #2: float[32,784], #3: float[32,784]");
  expect({.op = "TestConcat", .name = "c", .inputs = {a_, n_, a_}},
         "TestConcat node 'c' (model.cc:41): the list 'first' needs at least 2 inputs, got 1; "
         "inputs: #0: float[32,784], #1: int32[], #2: float[32,784]");
}

TEST_F(Mistake, InvalidInput) {
  expect({.op = "TestMatMul", .name = "m", .inputs = {a_, Output{}}},
         "TestMatMul node 'm' (model.cc:41): input 1 is an empty Output");
  expect({.op = "TestMatMul", .name = "m", .inputs = {a_, {b_.node, 1}}},
         "TestMatMul node 'm' (model.cc:41): input 1 is output 1 of 'b', which has 1");
  Graph other;
  Node& stranger = other.add({.op = "TestValue", .name = "x", .attrs = {{"dtype", f32}}});
  expect({.op = "TestMatMul", .name = "m", .inputs = {a_, stranger.output()}},
         "TestMatMul node 'm' (model.cc:41): input 1, 'x:0', belongs to another graph");
  expect({.op = "TestMatMul", .name = "m", .inputs = {a_, b_}, .control_inputs = {&stranger}},
         "TestMatMul node 'm' (model.cc:41): control input 'x' belongs to another graph");
}

TEST_F(Mistake, ValueInsteadOfAVariable) {
  expect({.op = "TestAssign", .name = "set", .inputs = {a_, b_}},
         "TestAssign node 'set' (model.cc:41): input ref is updated in place, so it must be a "
         "variable; 'a:0' is not; "
         "inputs: ref: float[32,784], value: float[128,10]");
  const Output w =
      graph_
          .add({.op = "TestVariable", .name = "w", .attrs = {{"dtype", f32}, {"shape", Shape{2}}}})
          .output();
  expect({.op = "TestAssign", .name = "set", .inputs = {w, b_}},
         "TestAssign node 'set' (model.cc:41): all inputs must have the same shape, but value has "
         "[128,10] and those "
         "before it [2]; inputs: ref: Ref(float)[2], value: float[128,10]");
}

TEST_F(Mistake, UnknownOp) {
  expect(
      {.op = "TestMatMull", .name = "m", .inputs = {a_, b_}}, Code::not_found,
      "Op type not registered 'TestMatMull' (node 'm', model.cc:41); did you mean 'TestMatMul'?");
}

TEST_F(Mistake, WrongAttributes) {
  expect({.op = "TestMatMul", .name = "m", .inputs = {a_, b_}, .attrs = {{"transposea", true}}},
         "TestMatMul node 'm' (model.cc:41): the op has no attribute 'transposea'; did you mean "
         "'transpose_a'? Inputs: "
         "a: float[32,784], b: float[128,10]");
  expect({.op = "TestMatMul", .name = "m", .inputs = {a_, b_}, .attrs = {{"transpose_a", 1}}},
         "TestMatMul node 'm' (model.cc:41): attribute 'transpose_a' must be of kind bool, got the "
         "int 1; "
         "inputs: a: float[32,784], b: float[128,10]");
  expect({.op = "TestPool", .name = "p", .inputs = {a_}},
         "TestPool node 'p' (model.cc:41): attributes without a default are missing: 'ksize' "
         "(list(int)), 'padding' "
         "(string); inputs: input: float[32,784]");
  const std::vector<int64_t> two{2, 2};
  expect({.op = "TestPool",
          .name = "p",
          .inputs = {a_},
          .attrs = {{"ksize", two}, {"padding", "same"}}},
         "TestPool node 'p' (model.cc:41): attribute 'padding': 'same' is not one of {'SAME', "
         "'VALID'}; "
         "inputs: input: float[32,784]");
  expect({.op = "TestPool",
          .name = "p",
          .inputs = {a_},
          .attrs = {{"ksize", std::vector<int64_t>{2}}}},
         "TestPool node 'p' (model.cc:41): attribute 'ksize': has 1 elements, fewer than 2; "
         "inputs: input: float[32,784]");
  expect({.op = "TestPool", .name = "p", .inputs = {a_}, .attrs = {{"steps", 0}}},
         "TestPool node 'p' (model.cc:41): attribute 'steps': 0 is less than 1; inputs: input: "
         "float[32,784]");
  expect(
      {.op = "TestValue", .name = "v"},
      "TestValue node 'v' (model.cc:41): attributes without a default are missing: 'dtype' (type)");
}

TEST_F(Mistake, IntsAreAcceptedAsFloatsAndEmptyListsOfAnyType) {
  Node& node = graph_.add(
      {.op = "TestPool",
       .inputs = {a_},
       .attrs = {{"ksize", std::vector<int64_t>{1, 1}}, {"padding", "SAME"}, {"scale", 2}}});
  EXPECT_EQ(node.attr<float>("scale"), 2.0f);
  expect(
      {.op = "TestPool", .name = "p", .inputs = {a_}, .attrs = {{"ksize", std::vector<float>{}}}},
      "TestPool node 'p' (model.cc:41): attribute 'ksize': has 0 elements, fewer than 2; "
      "inputs: input: float[32,784]");
}

TEST_F(Mistake, InvalidNames) {
  expect({.op = "TestMatMul", .name = "my node", .inputs = {a_, b_}},
         "TestMatMul node (model.cc:41): 'my node' is not a node name: names consist of letters, "
         "digits and _ . - / >, and start with a letter, a digit or a dot");
  // As a cluster's master does.
  expect_error_with(Code::invalid_argument, "'_x' is not a node name", [&] {
    graph_.add({.op = "TestMatMul", .name = "_x", .inputs = {a_, b_}});
  });
  const Output fits = value("c", f32, {784, 10});
  expect_error(
      [&] {
        graph_.insert({.op = "TestMatMul", .name = "a", .inputs = {a_, fits}}, {});
      },
      Code::invalid_argument, "TestMatMul node 'a': the graph already has a node of that name");
}

TEST_F(Mistake, LookingForMissingOutputs) {
  graph_.add(
      {.op = "TestTuple", .name = "layer1/pair", .inputs = {a_, b_}, .location = {"model.cc", 7}});
  expect_error([&] { graph_.output("layer2/pair:1"); }, Code::not_found,
               "the graph has no node 'layer2/pair'; did you mean 'layer1/pair'?");
  expect_error([&] { graph_.output("pair"); }, Code::not_found,
               "the graph has no node 'pair'; did you mean 'layer1/pair'?");
  expect_error([&] { graph_.output("layer1/pair:2"); }, Code::invalid_argument,
               "'layer1/pair:2': TestTuple node 'layer1/pair' (model.cc:7) has 2 outputs");
  expect_error([&] { graph_.output("a:x"); }, Code::invalid_argument,
               "'a:x' does not name an output: expected 'node' or 'node:1'");
  expect_error([] { Output{}.dtype(); }, Code::invalid_argument, "an empty Output has no dtype");
}

}  // namespace
}  // namespace leat
