// While loops of the C++ API, run in this process.
#include "frontends/cpp/control_flow/while_loop.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <thread>
#include <tuple>

#include "frontends/cpp/session.h"
#include "frontends/cpp/variables.h"
#include "graph/gradient.h"
#include "graph/ops.h"
#include "graph/passes/pipeline.h"
#include "graph/passes/placer.h"
#include "tests/support/expect_error.h"

namespace leat {
namespace {

using testing::HasSubstr;
using testing::Not;
using namespace std::chrono_literals;
using Outputs = std::vector<Output>;

Output number(Graph& graph, float value) { return constant(graph, Tensor::scalar(value)); }
Output count(Graph& graph, int32_t value) { return constant(graph, Tensor::scalar(value)); }

// i from 0 to n, and y = f(y, i).
Outputs counted(Output n, Output y, const std::function<Output(Output, Output)>& f,
                const LoopOptions& options = {}) {
  Graph& graph = n.graph();
  return while_loop([&](const Outputs& v) { return less(v[0], n); },
                    [&](const Outputs& v) {
                      return Outputs{v[0] + count(graph, 1), f(v[1], v[0])};
                    },
                    Outputs{count(graph, 0), y}, options);
}

TEST(WhileLoop, RunsWhileItsConditionHolds) {
  Graph graph;
  const Output n = placeholder(graph, "n", i32, {});
  const Output x = placeholder(graph, "x", f32, {any});
  const Outputs results = counted(n, x, [&](Output y, Output) { return y * x; });
  Session session(graph);
  const Tensor xs = Tensor::of<float>({2}, {2, -1});
  for (const auto& [times, first, second] :
       {std::tuple{0, 2.0f, -1.0f}, {1, 4.0f, 1.0f}, {5, 64.0f, 1.0f}, {2, 8.0f, -1.0f}}) {
    const auto values = session.run({{n, Tensor::scalar(times)}, {x, xs}}, results);
    EXPECT_EQ(values[0].item<int32_t>(), times);
    EXPECT_EQ(values[1].data<float>()[0], first);
    EXPECT_EQ(values[1].data<float>()[1], second);
  }
}

TEST(WhileLoop, VariablesKeepTheirShapesInTheBody) {
  Graph graph;
  const Output x = placeholder(graph, "x", f32, {any, 3});
  Shape seen;
  const Outputs results = counted(count(graph, 2), x, [&](Output y, Output) {
    seen = y.shape();
    return y * 2;
  });
  EXPECT_EQ(seen, Shape({any, 3}));
  EXPECT_EQ(results[1].shape(), Shape({any, 3}));
}

TEST(WhileLoop, NamesAChangingShape) {
  Graph graph;
  const Output n = count(graph, 3), x = constant(graph, {1.0F, 2.0F});
  expect_error_with(Code::invalid_argument,
                    "): variable 1, 'Const_1:0', has shape [2], but the body returns [4]: set "
                    "LoopOptions::shapes",
                    [&] { counted(n, x, [](Output y, Output) {
                            return concatenate({y, y});
                          }); });
  expect_error_with(Code::invalid_argument, "): 1 shapes are given for 2 variables",
                    [&] { counted(n, x, [](Output y, Output) { return y; }, {.shapes = {{2}}}); });
  expect_error_with(Code::invalid_argument, "starts with shape [2], which does not match [3]", [&] {
    counted(n, x, [](Output y, Output) { return y; }, {.shapes = {{}, {3}}});
  });
  // A change that only the step reveals.
  const Outputs results = counted(n, x, [](Output y, Output) { return boolean_mask(y, y > 1.5); });
  expect_error_with(Code::invalid_argument, "Shape of tensor [1] is not compatible with",
                    [&] { Session(graph).run({}, {results[1]}); });
}

TEST(WhileLoop, ShapesMayGrow) {
  Graph graph;
  const Output n = count(graph, 4);
  const Output one = constant(graph, Tensor::of<float>({1}, {1}));
  const Outputs results = counted(n, one,
                                  [&](Output y, Output) {
                                    return concatenate({y, y + one}, 0);
                                  },
                                  {.shapes = {{}, {any}}});
  const Tensor value = Session(graph).run({}, {results[1]})[0];
  EXPECT_EQ(value.shape(), (Shape{16}));
  EXPECT_EQ(value.data<float>()[15], 5);
}

TEST(WhileLoop, RunsNestedLoops) {
  Graph graph;
  const Output x = placeholder(graph, "x", f32, {});
  const Output n = count(graph, 5);
  const Outputs results = counted(n, x, [&](Output y, Output i) {
    return counted(i, y, [&](Output z, Output) { return z + x; })[1];
  });
  // 0 + 1 + 2 + 3 + 4 times x are added
  EXPECT_EQ(Session(graph).run({{x, Tensor::scalar(2.0f)}}, {results[1]})[0].item<float>(), 22);
}

// A variable may get the memory of its old value, as long as nobody else needs that: not another
// variable, and not what was given to the loop.
TEST(WhileLoop, ValuesThatOthersNeedKeepTheirMemory) {
  Graph graph;
  const Output n = placeholder(graph, "n", i32, {}), x = placeholder(graph, "x", f32, {2});
  const Outputs results =
      while_loop([&](const Outputs& v) { return less(v[0], n); },
                 [&](const Outputs& v) {
                   return Outputs{v[0] + 1, v[1] + x, v[1], v[3] + v[2], v[4] + v[3]};
                 },
                 Outputs{count(graph, 0), x, x, x, x});
  Session session(graph);
  const Tensor xs = Tensor::of<float>({2}, {1, -2});
  const auto values = session.run({{n, Tensor::scalar(5)}, {x, xs}}, results);
  float a = 1, b = 1, c = 1, d = 1;
  for (int i = 0; i < 5; ++i) std::tie(a, b, c, d) = std::tuple(a + 1, a, c + b, d + c);
  for (int i = 0; i < 2; ++i) {
    const float factor = xs.data<float>()[i];
    EXPECT_EQ(values[1].data<float>()[i], a * factor);
    EXPECT_EQ(values[2].data<float>()[i], b * factor);
    EXPECT_EQ(values[3].data<float>()[i], c * factor);
    EXPECT_EQ(values[4].data<float>()[i], d * factor);
  }
  EXPECT_EQ(xs.data<float>()[0], 1);
}

// After some iterations, a loop of this kind binds no memory any more: values that are overwritten
// (v[1]), that have two places in turn (v[2]), and that stay (v[3]).
TEST(WhileLoop, LongLoopsKeepTheirMemoryToThemselves) {
  Graph graph;
  const Output n = placeholder(graph, "n", i32, {}), x = placeholder(graph, "x", f32, {1, 2}),
               turn = constant(graph, Tensor::of<float>({2, 2}, {0, 1, -1, 0}));
  const Outputs results =
      while_loop([&](const Outputs& v) { return less(v[0], n); },
                 [&](const Outputs& v) {
                   return Outputs{v[0] + 1, v[1] + v[2] * v[3], matmul(v[2], turn), v[3]};
                 },
                 Outputs{count(graph, 0), x, x, constant(graph, 3.0F)});
  for (const bool fuse : {false, true}) {
    Session session(graph, {.fuse = fuse});
    struct Step {
      std::vector<Tensor> values;
      float sum[2], place[2];
    };
    std::vector<Step> steps;  // their values stay what they are while other steps run
    for (int iterations = 0; iterations < 30; ++iterations) {
      const float a = static_cast<float>(iterations + 1), b = -2;
      Step& step = steps.emplace_back(Step{{}, {a, b}, {a, b}});
      for (int i = 0; i < iterations; ++i) {
        for (int k = 0; k < 2; ++k) step.sum[k] += step.place[k] * 3;
        std::tie(step.place[0], step.place[1]) = std::tuple(-step.place[1], step.place[0]);
      }
      const Tensor given = Tensor::of<float>({1, 2}, {a, b});
      step.values = session.run({{n, Tensor::scalar(iterations)}, {x, given}}, results);
      EXPECT_EQ(given.data<float>()[0], a);
    }
    for (const Step& step : steps) {
      EXPECT_EQ(step.values[0].item<int32_t>(), &step - steps.data());
      EXPECT_EQ(step.values[3].item<float>(), 3);
      for (int k = 0; k < 2; ++k) {
        EXPECT_EQ(step.values[1].data<float>()[k], step.sum[k]);
        EXPECT_EQ(step.values[2].data<float>()[k], step.place[k]);
      }
    }
  }
}

TEST(WhileLoop, UpdatesAVariableInEachIteration) {
  Graph graph;
  const Output v = variable(graph, "v", {}, initializers::ones());
  const Output n = count(graph, 10);
  const Outputs results = counted(n, number(graph, 0), [&](Output y, Output) {
    return y + assign(v, identity(v) * number(graph, 2));
  });
  Session session(graph);
  session.run({initialize_variables(graph)});
  EXPECT_EQ(session.run({}, {results[1]})[0].item<float>(), 2 * 1023);
  EXPECT_EQ(session.run({}, std::vector{v})[0].item<float>(), 1024);
}

TEST(WhileLoop, ErrorNamesTheNode) {
  Graph graph;
  const Output table = placeholder(graph, "table", f32, {any});
  const Outputs results = counted(count(graph, 10), number(graph, 0), [&](Output y, Output i) {
    NameScope scope(graph, "look");
    return y + take(table, i);
  });
  Session session(graph);
  const Status status = error_of([&] {
    session.run({{table, Tensor::of<float>({3}, {1, 2, 3})}}, {results[1]});
  });
  EXPECT_EQ(status.code, Code::invalid_argument);
  EXPECT_THAT(status.message, HasSubstr("indices[0] = 3 is not in [0, 3)"));
  EXPECT_THAT(status.message, HasSubstr("[[{{node while/look/"));
  // The session remains usable.
  const Tensor large(f32, {10});
  EXPECT_EQ(session.run({{table, large}}, {results[0]})[0].item<int32_t>(), 10);
}

TEST(WhileLoop, ReportsMistakes) {
  Graph graph;
  const Output zero = number(graph, 0);
  const auto expect = [&](const std::string& text, const Outputs& variables, auto condition,
                          auto body) {
    expect_error_with(Code::invalid_argument, text,
                      [&] { while_loop(condition, body, variables, {.name = "w"}); });
    expect_error_with(Code::invalid_argument, "while_loop 'w' (tests/frontends/while_loop_test.cc:",
                      [&] { while_loop(condition, body, variables, {.name = "w"}); });
  };
  const auto below_ten = [](const Outputs& v) { return less(v[0], 10.f); };
  const auto same = [](const Outputs& v) { return v; };
  expect("it needs a variable", {}, below_ten, same);
  expect("the condition or the body is empty", {zero}, below_ten, nullptr);
  expect("variable 1 is an empty Output", {zero, Output()}, below_ten, same);
  expect(
      "the condition returns an empty Output", {zero}, [](const Outputs&) { return Output(); },
      same);
  expect(
      "a scalar bool, not float", {zero}, [](const Outputs& v) { return v[0]; }, same);
  expect("returns 2 values for 1 variables", {zero}, below_ten, [](const Outputs& v) {
    return Outputs{v[0], v[0]};
  });
  expect("returns an empty Output for variable 0", {zero}, below_ten,
         [](const Outputs&) { return Outputs(1); });
  expect("variable 0 with dtype int32 instead of float", {zero}, below_ten,
         [](const Outputs& v) { return Outputs{cast(v[0], i32)}; });
}

TEST(WhileLoop, EndlessLoopEndsAtItsDeadline) {
  Graph graph;
  const Output x = placeholder(graph, "x", f32, {});
  const Outputs results =
      while_loop([&](const Outputs& v) { return less(v[0], x); },
                 [&](const Outputs& v) { return Outputs{v[0] * number(graph, 0.5f)}; },
                 Outputs{number(graph, 0)});
  Session session(graph);
  const Status status = error_of([&] {
    session.run({{x, Tensor::scalar(1.0f)}}, results, {}, {.timeout = 200ms});
  });
  EXPECT_EQ(status.code, Code::deadline_exceeded) << status.message;
  EXPECT_THAT(status.message, HasSubstr("while/LoopCond"));
  EXPECT_EQ(session.run({{x, Tensor::scalar(-1.0f)}}, results)[0].item<float>(), 0);
}

// A kernel that waits in the loop learns why the step ends, and does not report it as its own
// error.
TEST(WhileLoop, DeadlineReachesKernelsThatWaitInIt) {
  Graph graph;
  Node& queue = graph.add({.op = "FIFOQueueV2",
                           .name = "queue",
                           .attrs = {{"component_types", std::vector<DType>{f32}}}});
  const auto taken = [&] {
    return graph
        .add({.op = "QueueDequeueV2",
              .inputs = {queue.output()},
              .attrs = {{"component_types", std::vector<DType>{f32}}}})
        .output();
  };
  const Output alone = taken();
  const Outputs results = while_loop([&](const Outputs& v) { return less(v[0], number(graph, 1)); },
                                     [&](const Outputs& v) { return Outputs{v[0] + taken()}; },
                                     Outputs{number(graph, 0)});
  Session session(graph);
  for (const Output& fetch : {alone, results[0]}) {
    const Status status = error_of([&] { session.run({}, {fetch}, {}, {.timeout = 200ms}); });
    EXPECT_EQ(status.code, Code::deadline_exceeded) << status.message;
    EXPECT_THAT(status.message, Not(HasSubstr("{{node"))) << status.message;
  }
}

TEST(WhileLoop, RunsManyStepsAtOnce) {
  Graph graph;
  const Output n = placeholder(graph, "n", i32, {});
  const Outputs results =
      counted(n, number(graph, 0), [&](Output y, Output) { return y + number(graph, 1); });
  Session session(graph);
  std::vector<std::thread> threads;
  std::atomic<int> right{0};
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      for (int i = 0; i < 50; ++i) {
        const int times = 37 * t + i;
        const auto values = session.run({{n, Tensor::scalar(times)}}, results);
        right += values[1].item<float>() == static_cast<float>(times);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(right, 200);
}

TEST(WhileLoop, TraceHasTheNodesOfEveryIteration) {
  Graph graph;
  const Outputs results = counted(count(graph, 3), number(graph, 1), [&](Output y, Output) {
    NameScope scope(graph, "inside");
    return exp(y);
  });
  RunMetadata metadata;
  Session(graph).run({}, {results[1]}, {}, {.trace = true}, &metadata);
  const auto is_exp = [](const TraceEvent& event) { return event.op == "Exp"; };
  EXPECT_EQ(std::count_if(metadata.events.begin(), metadata.events.end(), is_exp), 3);
}

TEST(WhileLoop, MakesAVariableInItsBodyOnce) {
  Graph graph;
  const Outputs results = counted(count(graph, 3), number(graph, 0), [&](Output y, Output) {
    return y + variable(graph, "inside", {}, initializers::constant(2.0));
  });
  Session session(graph);
  session.run({initialize_variables(graph)});
  EXPECT_EQ(session.run({}, {results[1]})[0].item<float>(), 6);
}

// A loop is one node without a GPU kernel: variables that it reads by reference must not go there.
TEST(WhileLoop, KeepsItsVariablesOffTheGpu) {
  Graph graph;
  const Output w = variable(graph, "w", {2}, initializers::zeros());
  const Output x0 = constant(graph, Tensor::of<float>({2}, {1, 2}));
  const std::vector<Output> out =
      while_loop([](const std::vector<Output>& v) { return less(v[0], 3); },
                 [&](const std::vector<Output>& v) {
                   return std::vector<Output>{v[0] + 1, v[1] + identity(w)};
                 },
                 Outputs{constant(graph, Tensor::scalar<int32_t>(0)), x0});
  PlacementOptions options;
  for (const auto& [name, type] : {std::pair("/job:worker/task:0/cpu:0", DeviceType::cpu),
                                   {"/job:worker/task:0/gpu:0", DeviceType::gpu}})
    options.devices.push_back({DeviceName::parse(name), type});
  place_stateful(graph, options);
  EXPECT_EQ(w.node->assigned_device->type, "CPU");
  PipelineOptions step{.signature = {.fetches = {out[1].name()}}};
  step.placement = options;
  EXPECT_NO_THROW(run_pipeline(graph, step));
}

}  // namespace
}  // namespace leat
