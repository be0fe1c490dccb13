// Programs, run through RegisteredGraph: segments, tapes, errors, values between segments.
#include "runtime/program.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <thread>

#include "graph/ops.h"
#include "tests/runtime/ops_for_tests.h"

namespace leat {
namespace {

using testing::AllOf;
using testing::HasSubstr;

TEST(Program, OneSegmentRunsOnTheCallingThread) {
  TestTask task;
  Graph graph;
  const Output x = feed(graph, "x", {any});
  const Output y = op("TestAdd", {x, op("TestAdd", {x, x})});
  const std::string name = y.name();
  const auto registered = task.registered(std::move(graph), {name});
  EXPECT_TRUE(registered->runs_on_caller());
  const StepResult result = run_step(*registered, {{"x:0", Tensor::of<float>({2}, {1, 2})}});
  ASSERT_EQ(result.fetches.size(), 1u);
  EXPECT_EQ(result.fetches[0].first, name);
  EXPECT_EQ(floats(result.fetches[0].second), (std::vector<float>{3, 6}));
}

TEST(Program, KeepsOneTapePerShapeAndDropsTheLeastRecentlyUsed) {
  TestTask task;
  Graph graph;
  const Output x = feed(graph, "x", {any});
  const Output y = op("TestAdd", {x, x});
  const auto registered = task.registered(std::move(graph), {y.name()});
  const Segment& segment = registered->programs()[0]->segment(0);
  for (int64_t n : {3, 4, 3, 4, 3}) run_step(*registered, {{"x:0", Tensor(f32, {n})}});
  EXPECT_EQ(segment.counts().compilations, 2u);
  constexpr int64_t most = Segment::most_tapes;
  for (int64_t n = 1; n <= most + 8; ++n) run_step(*registered, {{"x:0", Tensor(f32, {n})}});
  EXPECT_EQ(segment.counts().compilations, most + 8u);
  EXPECT_EQ(segment.counts().tapes, most);
  run_step(*registered, {{"x:0", Tensor(f32, {most + 8})}});
  EXPECT_EQ(segment.counts().compilations, most + 8u) << "a shape used of late was forgotten";
  run_step(*registered, {{"x:0", Tensor(f32, {1})}});
  EXPECT_EQ(segment.counts().compilations, most + 9u);
}

// The values that they send to each other lie in the same memory.
TEST(Program, ShapesTakeTurnsOnOneArena) {
  TestTask task;
  Graph graph;
  const Output x = feed(graph, "x", {any});
  Output y = op("TestAdd", {x, x});
  for (int i = 0; i < 4; ++i) y = op("TestAdd", {y, x});
  const auto registered = task.registered(std::move(graph), {y.name()});
  for (int round = 0; round < 3; ++round) {
    for (const int64_t n : {100'000, 3, 250'000, 100'000}) {
      Tensor ones(f32, {n});
      std::fill_n(ones.data<float>(), n, 1.0F);
      const StepResult result = run_step(*registered, {{"x:0", ones}});
      const Tensor& sum = result.fetches[0].second;
      EXPECT_EQ(sum.data<float>()[0], 6);
      EXPECT_EQ(sum.data<float>()[n - 1], 6);
    }
  }
  const Segment::Counts counts = registered->programs()[0]->segment(0).counts();
  EXPECT_EQ(counts.compilations, 3u);
  EXPECT_EQ(counts.arenas, 2u) << "one, and a larger one in its place";
}

TEST(Program, FeedMustMatchItsPlaceholder) {
  TestTask task;
  Graph graph;
  const Output x = feed(graph, "x", {any, 784}, f32, {"model.cc", 7});
  const auto registered = task.registered(std::move(graph), {op("TestAdd", {x, x}).name()});
  const Error shape = thrown_by([&] { run_step(*registered, {{"x:0", Tensor(f32, {2, 3})}}); });
  EXPECT_EQ(shape.code(), Code::invalid_argument);
  EXPECT_THAT(shape.message(), AllOf(HasSubstr("'x:0'"), HasSubstr("[2,3]"), HasSubstr("[?,784]"),
                                     HasSubstr("model.cc:7")));
  const Error dtype = thrown_by([&] { run_step(*registered, {{"x:0", Tensor(i32, {2, 784})}}); });
  EXPECT_THAT(dtype.message(),
              AllOf(HasSubstr("int32"), HasSubstr("float"), HasSubstr("model.cc:7")));
  const Error missing = thrown_by([&] { run_step(*registered, {}); });
  EXPECT_THAT(missing.message(), HasSubstr("no value was fed for 'x:0'"));
  const Error unknown = thrown_by([&] { run_step(*registered, {{"z:0", Tensor(f32, {2, 784})}}); });
  EXPECT_EQ(unknown.code(), Code::invalid_argument);
}

TEST(Program, ErrorNamesNodeOpDeviceAndLine) {
  TestTask task;
  Graph graph;
  const Output x = feed(graph, "x", {any});
  const Output y =
      graph
          .add({.op = "TestFail", .name = "layer/bad", .inputs = {x}, .location = {"model.cc", 12}})
          .output();
  const auto registered = task.registered(std::move(graph), {y.name()});
  const Error error = thrown_by([&] {
    run_step(*registered, {{"x:0", Tensor::of<float>({1}, {-1})}});
  });
  EXPECT_EQ(error.code(), Code::invalid_argument);
  EXPECT_EQ(error.message(),
            "sum is negative (TestFail on " + cpu0 + ", model.cc:12)\n\t [[{{node layer/bad}}]]");
  EXPECT_EQ(error.node(), "layer/bad");
  // The next step is not affected.
  EXPECT_EQ(floats(run_step(*registered, {{"x:0", Tensor::of<float>({1}, {1})}}).fetches[0].second),
            std::vector<float>{1});
}

TEST(Program, ListsMissingKernelsTogether) {
  TestTask task;
  static const Op op_a{{.name = "TestNoKernelA", .doc = "-"}},
      op_b{{.name = "TestNoKernelB", .doc = "-"}};
  Graph graph;
  graph.add({.op = "TestNoKernelA", .name = "a"});
  graph.add({.op = "TestNoKernelB", .name = "b"});
  const Error error = thrown_by([&] { task.registered(std::move(graph), {}); });
  EXPECT_EQ(error.code(), Code::unimplemented);
  EXPECT_THAT(error.message(),
              AllOf(HasSubstr("TestNoKernelA node 'a'"), HasSubstr("TestNoKernelB node 'b'")));
}

// ---- Between segments ----

TEST(Program, DataDependentShapesSeparateSegments) {
  TestTask task;
  Graph graph;
  const Output x = feed(graph, "x", {any});
  const Output positive = op("TestPositive", {op("TestAdd", {x, x})});
  const Output y = op("TestAdd", {positive, positive});
  const auto registered = task.registered(std::move(graph), {y.name()});
  EXPECT_FALSE(registered->runs_on_caller());
  EXPECT_EQ(registered->programs()[0]->plan().segments.size(), 2u);
  EXPECT_EQ(
      floats(
          run_step(*registered, {{"x:0", Tensor::of<float>({3}, {1, -1, 2})}}).fetches[0].second),
      (std::vector<float>{4, 8}));
  EXPECT_EQ(run_step(*registered, {{"x:0", Tensor::of<float>({3}, {-1, -1, -2})}})
                .fetches[0]
                .second.elements(),
            0);
}

TEST(Program, InputThatDecidesAShapeIsPartOfTheKey) {
  TestTask task;
  Graph graph;
  const Output x = feed(graph, "x", {any});
  const Output ones = op("TestOnes", {op("TestCount", {x})});
  const auto registered = task.registered(std::move(graph), {ones.name()});
  EXPECT_EQ(registered->programs()[0]->plan().segments.size(), 2u);
  for (const auto& [values, expected] : std::vector<std::pair<std::vector<float>, int64_t>>{
           {{1, 2, 3}, 3}, {{1, -2, 3}, 2}, {{1, 1, 1}, 3}}) {
    const auto result =
        run_step(*registered, {{"x:0", Tensor::of<float>({3}, std::span<const float>(values))}});
    EXPECT_EQ(result.fetches[0].second.elements(), expected);
  }
  EXPECT_EQ(registered->programs()[0]->segment(1).counts().compilations, 2u);
}

TEST(Program, ShapesFoldToConstants) {
  TestTask task;
  Graph graph;
  const Output x = feed(graph, "x", {any, any});
  const Output y = op("TestAdd", {x, x});
  const Output ones = op("TestOnes", {shape_of(y)});
  const auto registered = task.registered(std::move(graph), {ones.name()});
  EXPECT_EQ(run_step(*registered, {{"x:0", Tensor(f32, {2, 3})}}).fetches[0].second.shape(),
            Shape({2, 3}));
  EXPECT_EQ(registered->programs()[0]->plan().segments.size(), 1u);
  EXPECT_EQ(registered->programs()[0]->segment(0).counts().instructions, 1u)
      << "only TestOnes is left";
}

Tensor boolean(bool value) { return Tensor::scalar(value); }

TEST(Program, SwitchAndMergeTakeOneBranch) {
  TestTask task;
  Graph graph;
  const Output x = feed(graph, "x", {any});
  const Output p = feed(graph, "p", {}, DType::boolean);
  Node& branch = op_node(graph, "Switch", {x, p});
  const Output no = op("TestAdd", {branch.output(0), branch.output(0)});
  const Output yes = op("TestFail", {branch.output(1)});
  Node& merge = op_node(graph, "Merge", {no, yes});
  const Output after = op("TestAdd", {merge.output(0), merge.output(0)});
  const auto registered = task.registered(std::move(graph), {after.name(), merge.output(1).name()});
  // The branch not taken does not run: TestFail would throw.
  auto fetches =
      run_step(*registered, {{"x:0", Tensor::of<float>({1}, {-3})}, {"p:0", boolean(false)}})
          .fetches;
  EXPECT_EQ(floats(fetches[0].second), std::vector<float>{-12});
  EXPECT_EQ(fetches[1].second.item<int32_t>(), 0);
  fetches =
      run_step(*registered, {{"x:0", Tensor::of<float>({1}, {3})}, {"p:0", boolean(true)}}).fetches;
  EXPECT_EQ(floats(fetches[0].second), std::vector<float>{6});
  EXPECT_EQ(fetches[1].second.item<int32_t>(), 1);
}

// Nodes that became ready beside the Merge that ended one step must not run in the next.
TEST(Program, StepAfterAFailedMergeRunsNormally) {
  TestTask task;
  Graph graph;
  const Output x = feed(graph, "x", {any});
  const Output p = feed(graph, "p", {}, DType::boolean), q = feed(graph, "q", {}, DType::boolean);
  const Output a = op_node(graph, "Switch", {x, p}).output(1),
               b = op_node(graph, "Switch", {x, q}).output(1);
  const Output merged = op_node(graph, "Merge", {a, b}).output(0);
  const Output beside =
      op_node(graph, "Switch", {a, feed(graph, "r", {}, DType::boolean)}).output(1);
  const Output twice = op("TestAdd", {merged, merged});
  const auto registered = task.registered(std::move(graph), {twice.name(), beside.name()});
  const auto run = [&](bool second) {
    return run_step(*registered, {{"x:0", Tensor::of<float>({1}, {10})},
                                  {"p:0", boolean(true)},
                                  {"q:0", boolean(second)},
                                  {"r:0", boolean(true)}})
        .fetches;
  };
  for (int i = 0; i < 3; ++i) {
    EXPECT_THAT(thrown_by([&] { run(true); }).message(), HasSubstr("are both live"));
    const auto fetches = run(false);
    EXPECT_EQ(floats(fetches[0].second), std::vector<float>{20});
    EXPECT_EQ(floats(fetches[1].second), std::vector<float>{10});
  }
}

TEST(Program, FetchingADeadValueFails) {
  TestTask task;
  Graph graph;
  const Output x = feed(graph, "x", {any});
  const Output p = feed(graph, "p", {}, DType::boolean);
  Node& branch = op_node(graph, "Switch", {x, p});
  const Output no = op("TestAdd", {branch.output(0), branch.output(0)});
  const auto registered = task.registered(std::move(graph), {no.name()});
  const Error error = thrown_by([&] {
    run_step(*registered, {{"x:0", Tensor(f32, {1})}, {"p:0", boolean(true)}});
  });
  EXPECT_EQ(error.code(), Code::invalid_argument);
  EXPECT_EQ(error.message(), "The tensor returned for TestAdd:0 was not valid.");
}

TEST(Program, NestedConditionsAndControlEdgesBecomeDead) {
  TestTask task;
  const auto w = task.containers->variable("", "w", f32);
  w->assign(Tensor::of<float>({1}, {0}));
  Graph graph;
  const Output x = feed(graph, "x", {1});
  const Output p = feed(graph, "p", {}, DType::boolean);
  const Output q = feed(graph, "q", {}, DType::boolean);
  Node& outer = op_node(graph, "Switch", {x, p});
  Node& inner_predicate = op_node(graph, "Switch", {q, p});
  Node& inner = op_node(graph, "Switch", {outer.output(1), inner_predicate.output(1)});
  // A constant that lives only if the inner branch does, through a control edge, as TensorFlow's
  // cond makes it.
  const Output pivot = identity(inner.output(1));
  Output one;
  {
    ControlScope scope(graph, std::vector<Output>{pivot});
    one = constant(graph, Tensor::of<float>({1}, {100}));
    assign_add(variable(graph, "w", {1}), constant(graph, Tensor::of<float>({1}, {1})));
  }
  Node& inner_merge = op_node(graph, "Merge", {inner.output(0), one});
  Node& merge = op_node(graph, "Merge", {outer.output(0), inner_merge.output(0)});
  const auto registered = task.registered(std::move(graph), {merge.output(0).name()});
  const auto run = [&](bool outer_taken, bool inner_taken) {
    const auto result = run_step(*registered, {{"x:0", Tensor::of<float>({1}, {7})},
                                               {"p:0", boolean(outer_taken)},
                                               {"q:0", boolean(inner_taken)}});
    return floats(result.fetches[0].second)[0];
  };
  EXPECT_EQ(run(false, true), 7);
  EXPECT_EQ(floats(w->value())[0], 0);
  EXPECT_EQ(run(true, false), 7);
  EXPECT_EQ(floats(w->value())[0], 0);
  EXPECT_EQ(run(true, true), 100);
  EXPECT_EQ(floats(w->value())[0], 1);
}

TEST(Program, ManyValuesOfOneConditionShareASegment) {
  TestTask task;
  Graph graph;
  const Output p = feed(graph, "p", {}, DType::boolean);
  Output sum;
  for (int i = 0; i < 4; ++i) {
    const Output x = feed(graph, concat("x", i), {1});
    const Output taken = op_node(graph, "Switch", {x, p}).output(1);
    sum = i == 0 ? taken : op("TestAdd", {sum, taken});
  }
  const auto registered = task.registered(std::move(graph), {sum.name()});
  EXPECT_EQ(registered->programs()[0]->plan().segments.size(), 1u);
}

class ProgramThreads : public testing::TestWithParam<int> {};
INSTANTIATE_TEST_SUITE_P(Threads, ProgramThreads, testing::Values(1, 2, 4));

TEST_P(ProgramThreads, WaitingKernelHoldsNoThread) {
  TestTask task(GetParam());
  Graph graph;
  const Output x = feed(graph, "x", {1});
  const Output waited =
      graph.add({.op = "TestWait", .name = concat("gate", GetParam()), .inputs = {x}}).output();
  const Output y = op("TestAdd", {waited, waited});
  const auto registered = task.registered(std::move(graph), {y.name()});
  std::promise<StepResult> promise;
  registered->run({1, {{"x:0", Tensor::of<float>({1}, {4})}}, nullptr, false},
                  [&](StepResult r) { promise.set_value(std::move(r)); });
  const std::vector<StepActivity> activity = registered->activity(1);
  ASSERT_EQ(activity.size(), 1u);
  EXPECT_THAT(activity[0].to_string(),
              HasSubstr(concat("runs TestWait node gate", GetParam(), ", for ")));
  ASSERT_TRUE(TestGate::of(concat("gate", GetParam())).open());
  auto result = promise.get_future();
  ASSERT_EQ(result.wait_for(std::chrono::seconds(60)), std::future_status::ready);
  EXPECT_EQ(floats(result.get().fetches[0].second), std::vector<float>{8});
}

TEST_P(ProgramThreads, ConcurrentStepsUpdateAVariableOnceEach) {
  TestTask task(GetParam());
  const auto w = task.containers->variable("", "w", f32);
  w->assign(Tensor::of<float>({4}, {0, 0, 0, 0}));
  Graph graph;
  const Output updated = assign_add(variable(graph, "w", {4}), feed(graph, "x", {4}));
  const auto registered = task.registered(std::move(graph), {updated.name()});
  std::vector<std::thread> threads;
  std::atomic<bool> is_torn{false};
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&] {
      for (int i = 0; i < 100; ++i) {
        const auto values =
            floats(run_step(*registered, {{"x:0", Tensor::of<float>({4}, {1, 1, 1, 1})}})
                       .fetches[0]
                       .second);
        if (std::adjacent_find(values.begin(), values.end(), std::not_equal_to<>()) != values.end())
          is_torn = true;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(floats(w->value()), std::vector<float>(4, 400));
  EXPECT_FALSE(is_torn);
}

TEST(Program, TracesEveryInstruction) {
  TestTask task;
  Graph graph;
  const Output x = feed(graph, "x", {any});
  const Output y = op("TestAdd", {op("TestPositive", {op("TestAdd", {x, x})}),
                                  constant(graph, Tensor::of<float>({1}, {1}))});
  const auto registered = task.registered(std::move(graph), {y.name()});
  const auto events =
      run_step(*registered, {{"x:0", Tensor::of<float>({2}, {1, -1})}}, nullptr, true).events;
  ASSERT_EQ(events.size(), 3u);
  EXPECT_EQ(events[0].node, "TestAdd");
  EXPECT_EQ(events[1].op, "TestPositive");
  EXPECT_EQ(events[2].device, cpu0);
  for (const TraceEvent& event : events) EXPECT_LE(event.start_ns, event.end_ns);
  EXPECT_LE(events[0].end_ns, events[1].start_ns);
  const std::string json = to_chrome_trace(events);
  EXPECT_THAT(json,
              AllOf(HasSubstr("\"TestPositive\""), HasSubstr("CPU:0"), HasSubstr("traceEvents")));
}

}  // namespace
}  // namespace leat
