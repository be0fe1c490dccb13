// Variables by handle: the same variables as by reference, found through Identity, Switch and
// control edges.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "graph/gradient.h"
#include "graph/ops.h"
#include "tests/runtime/ops_for_tests.h"

namespace leat {
namespace {

using testing::HasSubstr;

Output handle(Graph& graph, const std::string& name, const Shape& shape) {
  return graph
      .add({.op = "VarHandleOp",
            .name = name,
            .attrs = {{"shape", shape}, {"dtype", f32}, {"shared_name", name}}})
      .output();
}

Output read(Output variable) { return op("ReadVariableOp", {variable}, {{"dtype", f32}}); }

Node& update(std::string_view name, std::vector<Output> inputs) {
  return op_node(inputs[0].graph(), name, inputs);
}

TEST(ResourceVariables, NameUninitialisedVariables) {
  TestTask task;
  Graph graph;
  const Output value = read(handle(graph, "w", {2}));
  const auto registered = task.registered(std::move(graph), {value.name()});
  const Error error = thrown_by([&] { run_step(*registered, {}); });
  EXPECT_EQ(error.code(), Code::failed_precondition);
  EXPECT_THAT(error.message(), HasSubstr("Attempting to use uninitialized value w"));
  EXPECT_THAT(error.message(), HasSubstr("[[{{node ReadVariableOp}}]]"));
}

// The shape is known, so nobody needs the value; the variable must still be initialised.
TEST(ResourceVariables, ShapeNeedsAnInitialisedVariable) {
  for (const bool is_read : {false, true}) {
    TestTask task;
    Graph graph;
    const Output w = handle(graph, "w", {2, 3});
    const Output extents = is_read ? shape_of(read(w)) : op("VariableShape", {w});
    const auto registered = task.registered(std::move(graph), {extents.name()});
    const Error error = thrown_by([&] { run_step(*registered, {}); });
    EXPECT_EQ(error.code(), Code::failed_precondition);
    EXPECT_THAT(error.message(), HasSubstr("Attempting to use uninitialized value w"));
  }
}

TEST(ResourceVariables, RejectNodesThatClaimAnotherDtype) {
  TestTask task;
  task.containers->variable("", "w", f32, VariableKind::resource)
      ->assign(Tensor::of<float>({2}, {1, 2}));
  const auto refused = [&](const std::function<std::string(Graph&, const Output&)>& use) {
    Graph graph;
    const Output w = handle(graph, "w", {2});
    const std::string fetch = use(graph, w);
    return thrown_by([&] { task.registered(std::move(graph), {fetch}); }).message();
  };
  EXPECT_THAT(refused([](Graph&, const Output& w) {
                return op("ReadVariableOp", {w}, {{"dtype", f64}}).name();
              }),
              HasSubstr("the variable 'w' holds float, not double"));
  EXPECT_THAT(refused([](Graph& graph, const Output& w) {
                const Output index = constant(graph, Tensor::of<int32_t>({1}, {0}));
                return op("ResourceGather", {w, index}, {{"dtype", i64}}).name();
              }),
              HasSubstr("the variable 'w' holds float, not int64"));
}

// The reference variables of another program may have the same name.
TEST(ResourceVariables, DifferFromReferenceVariables) {
  TestTask task;
  task.containers->variable("", "w", f32)->assign(Tensor::of<float>({2}, {5, 6}));
  Graph graph;
  const Output ref = variable(graph, "w", {2}), w = handle(graph, "w", {2});
  Node& assigned = update("AssignVariableOp", {w, feed(graph, "x", {2})});
  Output by_ref;
  {
    ControlScope scope(graph, std::vector<Node*>{&assigned});
    by_ref = assign_add(ref, read(w));
  }
  const auto registered = task.registered(std::move(graph), {by_ref.name()});
  const auto fetches = run_step(*registered, {{"x:0", Tensor::of<float>({2}, {1, 2})}}).fetches;
  EXPECT_EQ(floats(fetches[0].second), (std::vector<float>{6, 8}));
}

TEST(ResourceVariables, ReadKeepsItsValueWhenTheVariableChanges) {
  TestTask task;
  task.containers->variable("", "w", f32, VariableKind::resource)
      ->assign(Tensor::of<float>({2}, {1, 2}));
  Graph graph;
  const Output w = handle(graph, "w", {2}), before = read(w);
  Output after, sum;
  {
    ControlScope scope(graph, std::vector<Output>{before});
    Node& added = update("AssignAddVariableOp", {w, feed(graph, "x", {2})});
    ControlScope then(graph, std::vector<Node*>{&added});
    after = read(op("Identity", {w}));
    sum = op("TestAdd", {before, after});
  }
  const auto registered =
      task.registered(std::move(graph), {sum.name(), before.name(), after.name()});
  for (float step = 0; step < 2; ++step) {
    const auto fetches = run_step(*registered, {{"x:0", Tensor::of<float>({2}, {5, 5})}}).fetches;
    const float w0 = 1 + 5 * step;
    EXPECT_EQ(floats(fetches[0].second), (std::vector<float>{2 * w0 + 5, 2 * w0 + 7}));
    EXPECT_EQ(floats(fetches[1].second), (std::vector<float>{w0, w0 + 1}));
    EXPECT_EQ(floats(fetches[2].second), (std::vector<float>{w0 + 5, w0 + 6}));
  }
}

// cond(is_initialized(w), read w, initial value), as create_global_step makes it.
TEST(ResourceVariables, SwitchPassesUninitialisedVariables) {
  for (const bool by_ref : {false, true}) {
    TestTask task;
    Graph graph;
    const Output w = by_ref ? variable(graph, "w", {2}) : handle(graph, "w", {2});
    const Output is_there = op(by_ref ? "IsVariableInitialized" : "VarIsInitializedOp", {w});
    const Output initial = feed(graph, "x", {2});
    const Output taken = op_outputs(by_ref ? "RefSwitch" : "Switch", {w, is_there})[1];
    const Output present = by_ref ? op("Identity", {taken}) : read(taken);
    const Output absent = switch_on(initial, is_there)[0];
    const Output value = merge({absent, op("TestAdd", {present, present})})[0];
    const auto registered = task.registered(std::move(graph), {value.name()});
    const NamedTensors feeds = {{"x:0", Tensor::of<float>({2}, {1, 2})}};
    EXPECT_EQ(floats(run_step(*registered, feeds).fetches[0].second), (std::vector<float>{1, 2}));
    task.containers
        ->variable("", "w", f32, by_ref ? VariableKind::reference : VariableKind::resource)
        ->assign(Tensor::of<float>({2}, {5, 6}));
    EXPECT_EQ(floats(run_step(*registered, feeds).fetches[0].second), (std::vector<float>{10, 12}));
  }
}

TEST(ResourceVariables, TakeTheShapeOfTheValueIfUndeclared) {
  TestTask task;
  Graph graph;
  const Output w = handle(graph, "w", Shape::unknown());
  Node& assigned = update("AssignVariableOp", {w, feed(graph, "x", {any})});
  Output value;
  {
    ControlScope scope(graph, std::vector<Node*>{&assigned});
    value = read(w);
  }
  const auto registered = task.registered(std::move(graph), {value.name()});
  for (const int64_t n : {2, 3}) {
    const Tensor x = Tensor::of<float>({n}, std::vector<float>(n, 7.0f));
    EXPECT_EQ(run_step(*registered, {{"x:0", x}}).fetches[0].second.shape(), Shape{n});
  }
}

// As in TensorFlow, unless validate_shape is set: the declared shape is only the initial one.
TEST(ResourceVariables, MayChangeTheirDeclaredShape) {
  TestTask task;
  const auto assigned = [&](const Shape& fed) {
    Graph graph;
    const Output w = handle(graph, "w", {2});
    Node& assign = update("AssignVariableOp", {w, feed(graph, "x", fed)});
    const ControlScope scope(graph, std::vector<Node*>{&assign});
    const Output value = op("TestAdd", {read(w), read(w)});
    return task.registered(std::move(graph), {value.name()});
  };
  const auto any_shape = assigned({any}), declared = assigned({2});
  Graph reader;
  const Output value = read(handle(reader, "w", {2}));
  const auto reads = task.registered(std::move(reader), {value.name()});
  // The first value has another shape, too, and so has one after a value of the declared shape.
  for (const int64_t n : {3, 2, 4, 3}) {
    const Tensor x = Tensor::of<float>({n}, std::vector<float>(n, 7.0f));
    EXPECT_EQ(floats(run_step(*any_shape, {{"x:0", x}}).fetches[0].second),
              std::vector<float>(n, 14.0f));
    EXPECT_EQ(floats(run_step(*reads, {}).fetches[0].second), std::vector<float>(n, 7.0f));
  }
  const NamedTensors feeds = {{"x:0", Tensor::of<float>({2}, {1, 2})}};
  EXPECT_EQ(floats(run_step(*declared, feeds).fetches[0].second), (std::vector<float>{2, 4}));
  EXPECT_EQ(floats(run_step(*reads, {}).fetches[0].second), (std::vector<float>{1, 2}));
}

TEST(ResourceVariables, AreUninitialisedWhenDestroyed) {
  TestTask task;
  const auto w = task.containers->variable("", "w", f32, VariableKind::resource);
  w->assign(Tensor::scalar(1.0f));
  Graph graph;
  const Node& destroy = update("DestroyResourceOp", {handle(graph, "w", {})});
  ASSERT_EQ(destroy.name, "DestroyResourceOp");
  run_step(*task.registered(std::move(graph), {}), {});
  EXPECT_FALSE(w->is_initialized());
}

TEST(ResourceVariables, HaveGradientsThroughHandles) {
  TestTask task;
  task.containers->variable("", "w", f32, VariableKind::resource)
      ->assign(Tensor::of<float>({3}, {1, 2, 3}));
  Graph graph;
  const Output w = handle(graph, "w", {3});
  const Output rows = op("ResourceGather", {w, constant(graph, Tensor::of<int32_t>({2}, {2, 2}))},
                         {{"dtype", f32}});
  const Output loss = sum(read(w) * read(w)) + sum(rows);
  const Output dw = gradients({loss}, {w})[0];
  ASSERT_TRUE(dw);
  const auto registered = task.registered(std::move(graph), {dw.name()});
  EXPECT_EQ(floats(run_step(*registered, {}).fetches[0].second), (std::vector<float>{2, 4, 8}));
}

TEST(ResourceVariables, RejectFetchesOfHandles) {
  TestTask task;
  Graph graph;
  const Output w = handle(graph, "w", {});
  const Error error = thrown_by([&] { task.registered(std::move(graph), {w.name()}); });
  EXPECT_EQ(error.code(), Code::invalid_argument);
  EXPECT_THAT(error.message(), HasSubstr("of a node that reads it"));
}

}  // namespace
}  // namespace leat
