// Programs of many nodes, in each shape that is hard for the planner, the tape or the memory plan.
// See tests/graph/large_graph_test.cc.
#include <gtest/gtest.h>

#include "graph/ops.h"
#include "runtime/local_session.h"
#include "tests/runtime/ops_for_tests.h"

namespace leat {
namespace {

constexpr int many = 100'000;

// The value of one step.
std::vector<float> run(const Graph& graph, const std::vector<Output>& fetches,
                       const NamedTensors& feeds = {}) {
  LocalSession session({}, {.cpus = 1, .gpus = false});
  session.extend(graph);
  std::vector<std::string> names;
  for (const Output& fetch : fetches) names.push_back(fetch.name());
  std::vector<float> out;
  for (const Tensor& value : session.run(feeds, names, {})) out.push_back(floats(value)[0]);
  return out;
}

NamedTensors one() { return {{"x", Tensor::of<float>({2}, {1, 1})}}; }

TEST(LargeProgram, Chain) {
  Graph graph;
  const Output x = placeholder(graph, "x", f32, {2});
  Output h = x;
  for (int i = 0; i < many; ++i) h = h + x;
  EXPECT_EQ(run(graph, {h}, one()), std::vector<float>{many + 1.0f});
}

// All values exist at the same time.
TEST(LargeProgram, FanOutAndFanIn) {
  Graph graph;
  const Output x = placeholder(graph, "x", f32, {2});
  std::vector<Output> all;
  for (int i = 1; i <= many; ++i)
    all.push_back(op("LeakyRelu", {x}, {{"alpha", 1 / static_cast<float>(i)}}));
  EXPECT_EQ(run(graph, {add_n(all)}, one()), std::vector<float>{many});
}

TEST(LargeProgram, ControlEdges) {
  Graph graph;
  const Output x = placeholder(graph, "x", f32, {2});
  Node* const first = op("Neg", {x}).node;
  Node* last = first;
  for (int i = 0; i < many / 2; ++i)
    last = &graph.add({.op = "Neg", .inputs = {x}, .control_inputs = {last, first}});
  EXPECT_EQ(run(graph, {last->output()}, one()), std::vector<float>{-1});
}

TEST(LargeProgram, VariablesAndTheirUpdates) {
  constexpr int variables = many / 5;
  Graph graph;
  std::vector<Node*> initialisers, updates;
  Output first, last;
  const Output rate = constant(graph, Tensor::scalar(0.25f));
  for (int i = 0; i < variables; ++i) {
    const Output v =
        graph.add({.op = "VariableV2", .name = "v", .attrs = {{"dtype", f32}, {"shape", Shape{1}}}})
            .output();
    const Output value = constant(graph, Tensor::of<float>({1}, {static_cast<float>(i)}));
    initialisers.push_back(assign(v, value).node);
    updates.push_back(op("ApplyGradientDescent", {v, rate, op("Identity", {v})}).node);
    if (i == 0) first = v;
    last = v;
  }
  graph.add({.op = "NoOp", .name = "init", .control_inputs = std::move(initialisers)});
  graph.add({.op = "NoOp", .name = "train", .control_inputs = std::move(updates)});
  LocalSession session({}, {.cpus = 1, .gpus = false});
  session.extend(graph);
  session.run({}, {}, {"init"});
  session.run({}, {}, {"train"});
  const std::vector<Tensor> values = session.run({}, {first.name(), last.name()}, {});
  EXPECT_EQ(floats(values[0])[0], 0);
  EXPECT_EQ(floats(values[1])[0], 0.75f * (variables - 1));
}

// A chain of nodes outside of segments: if each wait set held all nodes before it, they would take
// gigabytes.
TEST(LargeProgram, ChainOfBoundaryNodes) {
  Graph graph;
  const Output x = placeholder(graph, "x", f32, {2});
  Output value = x, sum = x;
  for (int i = 0; i < many / 5; ++i) {
    value = op_outputs("Unique", {value}, {})[0];
    if (i % 100 == 0) sum = op("AddV2", {sum, value});
  }
  EXPECT_EQ(run(graph, {value, sum}, one()), (std::vector<float>{1, 1 + many / 500}));
}

TEST(LargeProgram, RejectsDatasetsNestedTooDeep) {
  Graph graph;
  const AttrMap attrs = {{"Toutput_types", std::vector<DType>{DType::variant}},
                         {"output_shapes", std::vector<Shape>{Shape{}}}};
  Output value = graph.add({.op = "OptionalNone"}).output();
  for (int i = 0; i < many / 5; ++i)
    value = graph.add({.op = "TensorDataset", .inputs = {value}, .attrs = attrs}).output();
  const Output size = op("DatasetCardinality", {value});
  try {
    run(graph, {size});
    ADD_FAILURE() << "no error";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), Code::invalid_argument);
    EXPECT_NE(error.message().find("more than 1000 levels deep"), std::string::npos) << error.message();
  }
}

}  // namespace
}  // namespace leat
