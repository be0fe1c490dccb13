// Values that are memory of others: contiguous parts are not copied.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "graph/ops.h"
#include "tests/runtime/ops_for_tests.h"

namespace leat {
namespace {

using Floats = std::vector<float>;

std::vector<Tensor> run(Graph graph, const std::vector<Output>& fetches, NamedTensors feeds,
                        TestTask& task) {
  std::vector<std::string> names;
  for (const Output& fetch : fetches) names.push_back(fetch.name());
  const auto registered = task.registered(std::move(graph), names);
  std::vector<Tensor> out;
  for (auto& [name, tensor] : run_step(*registered, std::move(feeds)).fetches)
    out.push_back(std::move(tensor));
  return out;
}

TEST(Views, PartsOfAFetchedValueShareItsMemory) {
  TestTask task;
  Graph graph;
  const Output x = feed(graph, "x", {6});
  const std::vector<Output> parts = split(op("TestAdd", {x, x}), {1, 2, 3}, 0);
  const std::vector<Output> halves = split(parts[2], {2, -1}, 0);
  const Output used =
      op("TestAdd", {parts[1], reshape(halves[0], constant(graph, Tensor::of<int64_t>({1}, {2})))});
  const auto got = run(std::move(graph), {parts[0], parts[1], halves[0], halves[1], used},
                       {{"x:0", Tensor::of<float>({6}, {1, 2, 3, 4, 5, 6})}}, task);
  EXPECT_EQ(floats(got[0]), (Floats{2}));
  EXPECT_EQ(floats(got[1]), (Floats{4, 6}));
  EXPECT_EQ(floats(got[2]), (Floats{8, 10}));
  EXPECT_EQ(floats(got[3]), (Floats{12}));
  EXPECT_EQ(floats(got[4]), (Floats{12, 16}));
  for (const int part : {1, 2, 3}) EXPECT_EQ(got[part].buffer(), got[0].buffer());
}

TEST(Views, PartsOfFeedsShareTheirMemory) {
  TestTask task;
  Graph graph;
  const std::vector<Output> rows = unstack(feed(graph, "x", {2, 2}));
  const std::vector<Output> words = split(feed(graph, "words", {3}, DType::string), {1, 2}, 0);
  const Tensor x = Tensor::of<float>({2, 2}, {1, 2, 3, 4});
  const auto got =
      run(std::move(graph), {rows[0], rows[1], words[0], words[1]},
          {{"x:0", x}, {"words:0", Tensor::of<std::string>({3}, {"a", "b", "c"})}}, task);
  EXPECT_EQ(floats(got[1]), (Floats{3, 4}));
  EXPECT_EQ(got[1].shape(), Shape{2});
  EXPECT_EQ(got[1].buffer(), x.buffer());
  EXPECT_EQ(got[2].item<std::string>(), "a");
  EXPECT_THAT(got[3].span<std::string>(), testing::ElementsAre("b", "c"));
}

TEST(Views, SplitComputedStrings) {
  TestTask task;
  Graph graph;
  const Output words = feed(graph, "words", {3}, DType::string);
  const std::vector<Output> parts = split(concatenate({words, words}, 0), {2, 4}, 0);
  const Output turned = concatenate({parts[1], parts[0]}, 0);
  const auto got = run(std::move(graph), {turned},
                       {{"words:0", Tensor::of<std::string>({3}, {"a", "b", "c"})}}, task);
  EXPECT_THAT(got[0].span<std::string>(), testing::ElementsAre("c", "a", "b", "c", "a", "b"));
}

TEST(Views, PartsOfConstantsAreKnown) {
  TestTask task;
  Graph graph;
  const Output x = feed(graph, "x", {4});
  const std::vector<Output> extents =
      unstack(constant(graph, Tensor::of<int64_t>({2, 2}, {4, 1, 2, 2})));
  const auto got = run(std::move(graph), {reshape(x, extents[1])},
                       {{"x:0", Tensor::of<float>({4}, {1, 2, 3, 4})}}, task);
  EXPECT_EQ(got[0].shape(), (Shape{2, 2}));
}

TEST(Views, PartsOfAVariableAreCopiedIfUsedAfterItsUpdate) {
  TestTask task;
  task.containers->variable("", "w", f32)->assign(Tensor::of<float>({4}, {1, 2, 3, 4}));
  Graph graph;
  const Output w = variable(graph, "w", {4});
  const std::vector<Output> before = split(w, {2, 2}, 0);
  Output updated;
  {
    const ControlScope scope(graph, before);
    updated = assign_add(w, feed(graph, "x", {4}));
  }
  const std::vector<Output> after = split(updated, {2, 2}, 0);
  const Output sum = op("TestAdd", {before[1], after[1]});
  const auto got = run(std::move(graph), {sum, before[0], after[0]},
                       {{"x:0", Tensor::of<float>({4}, {10, 10, 10, 10})}}, task);
  EXPECT_EQ(floats(got[0]), (Floats{16, 18}));
  EXPECT_EQ(floats(got[1]), (Floats{1, 2}));
  EXPECT_EQ(floats(got[2]), (Floats{11, 12}));
}

TEST(Views, FetchedPartsOfAVariableKeepTheirValues) {
  TestTask task;
  task.containers->variable("", "w", f32)->assign(Tensor::of<float>({4}, {1, 2, 3, 4}));
  Graph reading, update;
  const std::vector<Output> parts = split(variable(reading, "w", {4}), {2, 2}, 0);
  const Output updated = assign_add(variable(update, "w", {4}), feed(update, "x", {4}));
  const auto before = run(std::move(reading), parts, {}, task);
  run(std::move(update), {updated}, {{"x:0", Tensor::of<float>({4}, {10, 10, 10, 10})}}, task);
  EXPECT_EQ(floats(before[0]), (Floats{1, 2}));
  EXPECT_EQ(floats(before[1]), (Floats{3, 4}));
}

// The second half overwrites the sum's memory only when nobody needs the first.
TEST(Views, ResultsNeverOverwriteOtherParts) {
  TestTask task;
  Graph graph;
  const Output x = feed(graph, "x", {4});
  const std::vector<Output> parts = split(op("TestAdd", {x, x}), {2, 2}, 0);
  const Output first = op("TestAdd", {parts[0], parts[0]});
  const Output second = op("TestAdd", {parts[1], first});
  const Output all = concatenate({parts[1], second, parts[0], first}, 0);
  const auto got =
      run(std::move(graph), {all}, {{"x:0", Tensor::of<float>({4}, {1, 2, 3, 4})}}, task);
  EXPECT_EQ(floats(got[0]), (Floats{6, 8, 10, 16, 2, 4, 4, 8}));
}

}  // namespace
}  // namespace leat
