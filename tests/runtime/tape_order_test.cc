// In which order a tape runs nodes that could run in several: what sets memory free goes first.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "graph/ops.h"
#include "runtime/program.h"
#include "tests/runtime/ops_for_tests.h"

namespace leat {
namespace {

constexpr int64_t elements = 1 << 16;

class TapeOrder : public testing::Test {
 protected:
  // A feed of as many bytes as each of the values made of it.
  Output input() { return feed(graph_, "x", {elements}); }

  Output add(const std::string& name, Output a, Output b) {
    return graph_.add({.op = "TestAdd", .name = name, .inputs = {a, b}}).output();
  }
  Output sum(const std::string& name, Output x) {
    return graph_.add({.op = "Sum", .name = name, .inputs = {x, axes()}}).output();
  }

  // The names of the nodes, as they ran.
  std::vector<std::string> run(const Output& fetch) {
    const auto registered = task_.registered(std::move(graph_), {fetch.name()});
    Tensor x(f32, {elements});
    std::fill_n(x.data<float>(), elements, 1.0F);
    const StepResult result = run_step(*registered, {{"x:0", x}}, nullptr, true);
    value_ = result.fetches[0].second.item<float>();
    arena_bytes_ = registered->programs()[0]->segment(0).counts().arena_bytes;
    std::vector<std::string> names;
    for (const TraceEvent& event : result.events) names.push_back(event.node);
    return names;
  }

  Output axes() { return constant(graph_, Tensor::of<int32_t>({1}, {0})); }

  TestTask task_;
  Graph graph_;
  float value_ = 0;
  size_t arena_bytes_ = 0;
};

TEST_F(TapeOrder, ReadsEachValueBeforeItMakesTheNext) {
  const Output x = input();
  std::vector<Output> values;
  for (int i = 0; i < 8; ++i) values.push_back(add(concat("value", i), x, x));
  Output total = sum("sum0", values[0]);
  for (int i = 1; i < 8; ++i)
    total = add(concat("total", i), total, sum(concat("sum", i), values[i]));
  const std::vector<std::string> names = run(total);
  EXPECT_EQ(value_, 8 * 2 * elements);
  EXPECT_LT(arena_bytes_, 2 * elements * sizeof(float)) << "one value at a time is enough";
  ASSERT_GE(names.size(), 5u);
  EXPECT_THAT(std::vector<std::string>(names.begin(), names.begin() + 5),
              testing::ElementsAre("value0", "sum0", "value1", "sum1", "total1"));
}

TEST_F(TapeOrder, TheLastReaderOfAValueFollowsTheOneBefore) {
  const Output x = input();
  const Output value = add("value", x, x), first = add("first", value, x),
               other = add("other", x, x);
  const Output last = sum("last", value);
  const Output total = add("total", last, sum("sum", add("both", first, other)));
  EXPECT_THAT(run(total),
              testing::ElementsAre("value", "first", "last", "other", "both", "sum", "total"));
  EXPECT_EQ(value_, (2 + 3 + 2) * elements);
}

}  // namespace
}  // namespace leat
