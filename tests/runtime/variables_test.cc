// Variables in programs: initialisation, order of reads and writes, shapes.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "graph/ops.h"
#include "tests/runtime/ops_for_tests.h"

namespace leat {
namespace {

using testing::HasSubstr;

TEST(Variables, NameUninitialisedVariables) {
  TestTask task;
  Graph graph;
  const Output w = variable(graph, "w", {2});
  const Output read = graph.add({.op = "Identity", .name = "w/read", .inputs = {w}}).output();
  const auto registered = task.registered(std::move(graph), {read.name()});
  const Error error = thrown_by([&] { run_step(*registered, {}); });
  EXPECT_EQ(error.code(), Code::failed_precondition);
  EXPECT_EQ(error.message(),
            "Attempting to use uninitialized value w (on "
            "/job:localhost/replica:0/task:0/device:CPU:0)\n\t [[{{node w/read}}]]");
}

TEST(Variables, AssignInitialisesAndReturnsTheNewValue) {
  TestTask task;
  Graph graph;
  const Output w = variable(graph, "w", {2});
  const Output assigned = assign(w, feed(graph, "x", {2}));
  const auto init = task.registered(std::move(graph), {assigned.name()});
  EXPECT_EQ(floats(run_step(*init, {{"x:0", Tensor::of<float>({2}, {1, 2})}}).fetches[0].second),
            (std::vector<float>{1, 2}));

  Graph other;
  const Output same = variable(other, "w", {2});
  const Output added = assign_add(same, feed(other, "x", {2}));
  const auto add = task.registered(std::move(other), {added.name()});
  const Tensor first =
      run_step(*add, {{"x:0", Tensor::of<float>({2}, {10, 10})}}).fetches[0].second;
  const Tensor second =
      run_step(*add, {{"x:0", Tensor::of<float>({2}, {10, 10})}}).fetches[0].second;
  EXPECT_EQ(floats(first), (std::vector<float>{11, 12})) << "what was fetched must not change";
  EXPECT_EQ(floats(second), (std::vector<float>{21, 22}));
}

TEST(Variables, UnorderedReadSeesTheOldValueUnlessFetched) {
  TestTask task;
  task.containers->variable("", "w", f32)->assign(Tensor::of<float>({2}, {1, 2}));
  Graph graph;
  const Output w = variable(graph, "w", {2});
  const Output read = op("Identity", {w});
  // The update comes first in the graph; the users of the read do not depend on it.
  const Output updated = assign_add(w, feed(graph, "x", {2}));
  const Output sum = op("TestAdd", {read, read});
  const auto registered =
      task.registered(std::move(graph), {sum.name(), updated.name(), read.name()});
  const auto fetches = run_step(*registered, {{"x:0", Tensor::of<float>({2}, {5, 5})}}).fetches;
  EXPECT_EQ(floats(fetches[0].second), (std::vector<float>{2, 4}));
  EXPECT_EQ(floats(fetches[1].second), (std::vector<float>{6, 7}));
  EXPECT_EQ(floats(fetches[2].second), (std::vector<float>{6, 7}));
}

TEST(Variables, ReadIsCopiedIfItsUserRunsAfterTheWrite) {
  TestTask task;
  task.containers->variable("", "w", f32)->assign(Tensor::of<float>({1}, {1}));
  Graph graph;
  const Output w = variable(graph, "w", {1});
  const Output before = op("Identity", {w});
  Output updated;
  {
    ControlScope scope(graph, std::vector<Output>{before});
    updated = assign_add(w, feed(graph, "x", {1}));
  }
  const Output sum = op("TestAdd", {before, updated});  // old value + new value
  const auto registered = task.registered(std::move(graph), {sum.name()});
  EXPECT_EQ(
      floats(run_step(*registered, {{"x:0", Tensor::of<float>({1}, {10})}}).fetches[0].second),
      std::vector<float>{12});
}

TEST(Variables, ControlEdgeOrdersAReadAfterAWrite) {
  TestTask task;
  task.containers->variable("", "w", f32)->assign(Tensor::of<float>({1}, {1}));
  Graph graph;
  const Output w = variable(graph, "w", {1});
  const Output updated = assign_add(w, feed(graph, "x", {1}));
  Output read;
  {
    ControlScope scope(graph, std::vector<Output>{updated});
    read = op("Identity", {w});
  }
  const auto registered = task.registered(std::move(graph), {read.name()});
  EXPECT_EQ(
      floats(run_step(*registered, {{"x:0", Tensor::of<float>({1}, {10})}}).fetches[0].second),
      std::vector<float>{11});
}

TEST(Variables, FailedTapeLeavesItsVariableUnchanged) {
  TestTask task;
  const auto w = task.containers->variable("", "w", f32);
  w->assign(Tensor::of<float>({1}, {1}));
  const Tensor handle = w->value();  // so that Assign needs other memory
  Graph graph;
  const Output x = feed(graph, "x", {1});
  const Output assigned = assign(variable(graph, "w", {1}), op("TestFail", {x}));
  const auto registered = task.registered(std::move(graph), {assigned.name()});
  EXPECT_THROW(run_step(*registered, {{"x:0", Tensor::of<float>({1}, {-1})}}), Error);
  EXPECT_EQ(floats(w->value()), std::vector<float>{1});
  run_step(*registered, {{"x:0", Tensor::of<float>({1}, {3})}});
  EXPECT_EQ(floats(w->value()), std::vector<float>{3});
  EXPECT_EQ(floats(handle), std::vector<float>{1});
}

TEST(Variables, VariableOfUnknownShapeMayChangeIt) {
  TestTask task;
  Graph graph;
  const Output w = variable(graph, "w", Shape::unknown());
  const Output x = feed(graph, "x", {any});
  const Output assigned = op("Assign", {w, x}, {{"validate_shape", false}});
  const auto init = task.registered(std::move(graph), {assigned.name()});
  Graph reader;
  const Output r = variable(reader, "w", Shape::unknown());
  const Output sum = op("TestAdd", {r, r});
  const auto read = task.registered(std::move(reader), {sum.name()});
  EXPECT_THAT(thrown_by([&] { run_step(*read, {}); }).message(),
              HasSubstr("uninitialized value w"));
  for (int64_t n : {2, 3, 2}) {
    run_step(
        *init,
        {{"x:0", Tensor::of<float>({n}, std::span<const float>(std::vector<float>(n, 1.0f)))}});
    EXPECT_EQ(floats(run_step(*read, {}).fetches[0].second), std::vector<float>(n, 2.0f));
  }
}

TEST(Variables, AnotherShapeInTheContainerFails) {
  TestTask task;
  task.containers->variable("", "w", f32)->assign(Tensor::of<float>({1}, {1}));
  Graph graph;
  const Output read = op("Identity", {variable(graph, "w", {2})});
  const auto registered = task.registered(std::move(graph), {read.name()});
  EXPECT_THAT(thrown_by([&] { run_step(*registered, {}); }).message(),
              testing::AllOf(HasSubstr("[1]"), HasSubstr("[2]"), HasSubstr("'w'")));
}

TEST(Variables, IsVariableInitializedSeesBothStates) {
  TestTask task;
  Graph graph;
  const Output is_initialized = op("IsVariableInitialized", {variable(graph, "w", {2})});
  const auto registered = task.registered(std::move(graph), {is_initialized.name()});
  EXPECT_FALSE(run_step(*registered, {}).fetches[0].second.item<bool>());
  task.containers->variable("", "w", f32)->assign(Tensor::of<float>({2}, {1, 1}));
  EXPECT_TRUE(run_step(*registered, {}).fetches[0].second.item<bool>());
}

TEST(Variables, FetchOfTheReferenceReadsIt) {
  TestTask task;
  task.containers->variable("", "w", f32)->assign(Tensor::of<float>({2}, {1, 2}));
  Graph graph;
  const Output w = variable(graph, "w", {2});
  const auto registered = task.registered(std::move(graph), {"w:0"});
  (void)w;
  EXPECT_EQ(floats(run_step(*registered, {}).fetches[0].second), (std::vector<float>{1, 2}));
}

}  // namespace
}  // namespace leat
