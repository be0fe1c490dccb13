// Making nodes: names, scopes and inference. For mistakes see mistakes_test.cc.
#include "graph/graph.h"

#include <gtest/gtest.h>

#include "tests/support/expect_error.h"

namespace leat {
namespace {

Output value(Graph& graph, std::string name, DType dtype = f32, Shape shape = Shape::unknown()) {
  return graph
      .add({.op = "TestValue",
            .name = std::move(name),
            .attrs = {{"dtype", dtype}, {"shape", shape}}})
      .output();
}

TEST(Graph, InfersTypesDefaultsAndShapes) {
  Graph graph;
  const Output a = value(graph, "a", f64, {any, 3});
  const Output b = value(graph, "b", f64, {3, 4});
  Node& product = graph.add({.op = "TestMatMul", .inputs = {a, b}});
  EXPECT_EQ(product.name, "TestMatMul");
  EXPECT_EQ(product.attr<DType>("T"), f64);
  EXPECT_FALSE(product.attr<bool>("transpose_a"));
  EXPECT_EQ(product.output().dtype(), f64);
  EXPECT_EQ(product.output().shape(), (Shape{any, 4}));
  EXPECT_EQ(product.output().name(), "TestMatMul:0");
}

TEST(Graph, InfersTheLengthOfLists) {
  Graph graph;
  const Output x = value(graph, "x");
  const Output axis = value(graph, "axis", i32);
  Node& node = graph.add({.op = "TestConcat", .inputs = {x, x, x, axis, x, x, x}});
  EXPECT_EQ(node.attr<int64_t>("N"), 3);
  EXPECT_EQ(node.attr<DType>("T"), f32);
  Node& tuple = graph.add({.op = "TestTuple", .inputs = {x, axis}});
  EXPECT_EQ(tuple.attr<std::vector<DType>>("T"), (std::vector<DType>{f32, i32}));
  ASSERT_EQ(tuple.num_outputs(), 2);
  EXPECT_EQ(tuple.output(1).dtype(), i32);
  Node& split = graph.add({.op = "TestSplit", .inputs = {x}, .attrs = {{"N", 2}}});
  ASSERT_EQ(split.num_outputs(), 3);
  EXPECT_EQ(split.output(2).dtype(), DType::string);
}

TEST(Graph, ReadsReferencesAsValuesAndPassesThemToRefInputs) {
  Graph graph;
  const Output variable = graph
                              .add({.op = "TestVariable",
                                    .name = "w",
                                    .attrs = {{"dtype", f32}, {"shape", Shape{2, 2}}}})
                              .output();
  Node& product = graph.add({.op = "TestMatMul", .inputs = {variable, variable}});
  EXPECT_FALSE(product.output().is_ref());
  Node& assign = graph.add({.op = "TestAssign", .inputs = {variable, product.output()}});
  EXPECT_TRUE(assign.output().is_ref());
  EXPECT_EQ(assign.output().shape(), (Shape{2, 2}));
}

TEST(Graph, MakesNamesUniqueAsInTensorFlow) {
  Graph graph;
  EXPECT_EQ(value(graph, "x").node->name, "x");
  EXPECT_EQ(value(graph, "x").node->name, "x_1");
  EXPECT_EQ(value(graph, "x_2").node->name, "x_2");
  EXPECT_EQ(value(graph, "x").node->name, "x_3");
  EXPECT_EQ(value(graph, "").node->name, "TestValue");
  EXPECT_EQ(graph.unique_name("x"), "x_4");
  EXPECT_EQ(graph.unique_name("x"), "x_4");  // still free
  EXPECT_EQ(graph.unique_name("y"), "y");
  {
    const NameScope scope(graph, "layer");
    EXPECT_EQ(scope.name(), "layer/");
    EXPECT_EQ(value(graph, "w").node->name, "layer/w");
    const NameScope inner(graph, "part");
    EXPECT_EQ(value(graph, "w").node->name, "layer/part/w");
    const NameScope root(graph, "");
    EXPECT_EQ(value(graph, "w").node->name, "w");
  }
  const NameScope second(graph, "layer");
  EXPECT_EQ(value(graph, "w").node->name, "layer_1/w");
  const NameScope again(graph, "layer/");
  EXPECT_EQ(value(graph, "w").node->name, "layer/w_1");
}

TEST(Graph, NodesNeverTakeTheNameOfAScope) {
  Graph graph;
  { const NameScope scope(graph, "layer"); }
  EXPECT_EQ(value(graph, "layer").node->name, "layer_1");
}

TEST(Graph, DeviceScopesMergePartByPart) {
  Graph graph;
  const DeviceScope outer(graph, "/job:ps/task:1");
  {
    const DeviceScope inner(graph, "/task:2/device:GPU:0");
    EXPECT_EQ(value(graph, "a").node->requested_device,
              DeviceName::parse("/job:ps/task:2/device:GPU:0"));
  }
  EXPECT_EQ(value(graph, "b").node->requested_device, DeviceName::parse("/job:ps/task:1"));
}

TEST(Graph, ControlScopesAddUpWithoutDuplicates) {
  Graph graph;
  const Output a = value(graph, "a");
  const Output b = value(graph, "b");
  const ControlScope outer(graph, {a});
  {
    const ControlScope inner(graph, {b, a});
    EXPECT_EQ(value(graph, "c").node->control_inputs, (std::vector<Node*>{a.node, b.node}));
  }
  EXPECT_EQ(value(graph, "d").node->control_inputs, (std::vector<Node*>{a.node}));
}

TEST(Graph, ColocationScopeSetsClassAndReplacesTheDevice) {
  Graph graph;
  Output w;
  {
    const DeviceScope ps(graph, "/job:ps/task:0");
    w = value(graph, "w");
  }
  const DeviceScope worker(graph, "/job:worker/task:0");
  {
    const ColocationScope with(graph, {w});
    Node& slot = *value(graph, "slot").node;
    EXPECT_EQ(slot.attr<std::vector<std::string>>("_class"), (std::vector<std::string>{"loc:@w"}));
    EXPECT_EQ(slot.requested_device, DeviceName::parse("/job:ps/task:0"));
  }
  Node& other = *value(graph, "other").node;
  EXPECT_FALSE(other.view().has("_class"));
  EXPECT_EQ(other.requested_device, DeviceName::parse("/job:worker/task:0"));
}

TEST(Graph, FindsNodesAndOutputs) {
  Graph graph;
  const Output x = value(graph, "x");
  Node& tuple = graph.add({.op = "TestTuple", .name = "pair", .inputs = {x, x}});
  EXPECT_EQ(graph.find("pair"), &tuple);
  EXPECT_EQ(graph.find("pai"), nullptr);
  EXPECT_TRUE(same(graph.output("pair"), tuple.output(0)));
  EXPECT_TRUE(same(graph.output("pair:1"), tuple.output(1)));
}

TEST(Graph, CloneIsEqualAndIndependent) {
  Graph graph;
  const Output x = value(graph, "x", f32, {2, 2});
  const Output y =
      graph.add({.op = "TestMatMul", .name = "y", .inputs = {x, x}, .control_inputs = {x.node}})
          .output();
  graph.add_to_collection("outputs", y);
  Graph copy = graph.clone();
  ASSERT_EQ(copy.size(), 2u);
  Node& y2 = *copy.find("y");
  EXPECT_NE(&y2, y.node);
  EXPECT_EQ(y2.inputs[0].node, copy.find("x"));
  EXPECT_EQ(y2.control_inputs[0], copy.find("x"));
  EXPECT_EQ(y2.outputs[0].shape, (Shape{2, 2}));
  ASSERT_EQ(copy.collection("outputs").size(), 1u);
  EXPECT_TRUE(same(copy.collection("outputs")[0], y2.output()));
  EXPECT_EQ(copy.unique_name("x"), "x_1");
  value(copy, "z");
  EXPECT_EQ(graph.find("z"), nullptr);
}

TEST(Graph, NodesKeepTheirAddressesWhenTheGraphMoves) {
  Graph graph;
  Node* node = value(graph, "x").node;
  Graph moved = std::move(graph);
  EXPECT_EQ(moved.find("x"), node);
  EXPECT_EQ(node->graph, &moved);
  EXPECT_EQ(value(moved, "x").node->name, "x_1");
}

TEST(Graph, KeepDropsOtherNodesAndRenumbers) {
  Graph graph;
  const Output a = value(graph, "a");
  value(graph, "b");
  const Output c = value(graph, "c");
  graph.keep({true, false, true});
  ASSERT_EQ(graph.size(), 2u);
  EXPECT_EQ(graph.nodes()[1].get(), c.node);
  EXPECT_EQ(c.node->id, 1);
  EXPECT_EQ(graph.find("a"), a.node);
  EXPECT_EQ(graph.find("b"), nullptr);
  EXPECT_EQ(value(graph, "b").node->id, 2);
}

TEST(Graph, KeepRejectsDroppingUsedNodes) {
  Graph graph;
  const Output a = value(graph, "a");
  graph.add({.op = "TestMatMul", .name = "y", .inputs = {a, a}});
  expect_error(
      [&] {
        graph.keep({false, true});
      },
      Code::internal, "'a' was left out of the graph, but 'y' uses it");
  EXPECT_EQ(graph.size(), 2u);
}

TEST(Graph, CopiesShareOutputsUntilOneIsWritten) {
  Graph graph;
  const Output x = value(graph, "x", f32, {2, 2});
  const Output y = graph.add({.op = "TestMatMul", .name = "y", .inputs = {x, x}}).output();
  EXPECT_EQ(&y.shape(), &x.shape());  // both share one object
  const Graph copy = graph.clone();
  Node& copied = *copy.find("y");
  EXPECT_EQ(&copied.output().shape(), &y.shape());
  copied.outputs.write()[0].shape = {2, 3};
  EXPECT_EQ(copied.output().shape(), (Shape{2, 3}));
  EXPECT_EQ(y.shape(), (Shape{2, 2}));
  EXPECT_EQ(x.shape(), (Shape{2, 2}));
}

TEST(Graph, InsertIgnoresScopesAndKeepsTheName) {
  Graph graph;
  const NameScope scope(graph, "layer");
  const DeviceScope device(graph, "/job:ps");
  const DeviceName worker = DeviceName::parse("/job:worker/task:0/device:CPU:0");
  Node& node =
      graph.insert({.op = "TestValue", .name = "_edge/x", .attrs = {{"dtype", f32}}}, worker);
  EXPECT_EQ(node.name, "_edge/x");
  EXPECT_EQ(node.assigned_device, worker);
  EXPECT_TRUE(node.requested_device->is_empty());
}

TEST(Graph, ReportsTopologicalOrderAndConsumers) {
  Graph graph;
  const Output a = value(graph, "a");
  const Output b = value(graph, "b");
  Node& tuple =
      graph.add({.op = "TestTuple", .name = "t", .inputs = {b, a}, .control_inputs = {a.node}});
  a.node->control_inputs = {b.node};  // b before a
  EXPECT_EQ(topological_order(graph), (std::vector<Node*>{b.node, a.node, &tuple}));
  const Consumers consumers(graph);
  ASSERT_EQ(consumers.of(*a.node).size(), 2u);
  EXPECT_EQ(consumers.of(*a.node)[0].input, 1);
  EXPECT_EQ(consumers.of(*a.node)[1].input, -1);
  ASSERT_EQ(consumers.of(*b.node).size(), 2u);
  EXPECT_EQ(consumers.of(*b.node)[0].node, a.node);
  EXPECT_EQ(consumers.of(*b.node)[1].node, &tuple);
  EXPECT_TRUE(consumers.of(tuple).empty());
  b.node->control_inputs = {&tuple};
  try {
    topological_order(graph);
    FAIL() << "no cycle was found";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), Code::invalid_argument);
    EXPECT_EQ(error.message(), "the graph has a cycle: a -> t -> b -> a");
  }
}

}  // namespace
}  // namespace leat
