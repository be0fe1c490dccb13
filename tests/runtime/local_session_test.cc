// The session in this process, through the whole pipeline.
#include "runtime/local_session.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <thread>

#include "graph/ops.h"
#include "tests/runtime/ops_for_tests.h"

namespace leat {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::StartsWith;

const LocalDevices one_cpu{.cpus = 1, .gpus = false};
const LocalDevices two_cpus{.cpus = 2, .gpus = false};

Tensor vector_of(std::vector<float> values) {
  return Tensor::of<float>({static_cast<int64_t>(values.size())}, std::span<const float>(values));
}

TEST(LocalSession, RunsFeedsFetchesAndTargets) {
  Graph graph;
  const Output x = placeholder(graph, "x", f32, {any});
  const Output w = variable(graph, "w", {2});
  const Output init = assign(w, constant(graph, vector_of({1, 2})));
  const Output y = op("TestAdd", {x, w});
  LocalSession session({}, one_cpu);
  session.extend(graph);
  EXPECT_TRUE(session.run({}, {}, {init.node->name}).empty());
  const auto fetched = session.run({{"x", vector_of({10, 10})}}, {y.name(), "w:0", y.name()}, {});
  ASSERT_EQ(fetched.size(), 3u);
  EXPECT_EQ(floats(fetched[0]), (std::vector<float>{11, 12}));
  EXPECT_EQ(floats(fetched[1]), (std::vector<float>{1, 2}));
  EXPECT_EQ(floats(fetched[2]), (std::vector<float>{11, 12}));
}

TEST(LocalSession, ReportsErrorsInTensorFlowsWords) {
  Graph graph;
  const Output x = placeholder(graph, "x", f32, {any, 3}, {"model.cc", 5});
  graph.add({.op = "TestAdd", .name = "y", .inputs = {x, x}});
  const Output w = variable(graph, "w", {1});
  graph.add({.op = "Identity", .name = "w/read", .inputs = {w}});
  LocalSession session({}, one_cpu);
  session.extend(graph);
  const Tensor value(f32, {2, 3});
  const auto error = [&](const NamedTensors& feeds, std::vector<std::string> fetches,
                         std::vector<std::string> targets = {}) {
    return thrown_by([&] { session.run(feeds, fetches, targets); });
  };
  const Error nothing = error({}, {});
  EXPECT_EQ(nothing.code(), Code::invalid_argument);
  EXPECT_EQ(nothing.message(), "Must specify at least one target to fetch or execute.");
  EXPECT_EQ(error({{"nix:0", value}}, {"y:0"}).code(), Code::not_found);
  EXPECT_THAT(error({{"nix:0", value}}, {"y:0"}).message(), HasSubstr("nix"));
  EXPECT_EQ(error({{"x:0", value}}, {"nix:0"}).code(), Code::not_found);
  EXPECT_EQ(error({{"x:0", value}}, {}, {"nix"}).code(), Code::not_found);
  EXPECT_EQ(error({{"x:0", value}, {"x", value}}, {"y:0"}).code(), Code::invalid_argument);
  EXPECT_THAT(error({{"x:0", value}, {"x", value}}, {"y:0"}).message(),
              HasSubstr("\"x:0\" fed more than once"));
  EXPECT_EQ(error({{"x:0", value}}, {"x:0"}).code(), Code::invalid_argument);
  EXPECT_EQ(error({{"x:0", value}}, {"y:1"}).code(), Code::invalid_argument);
  const Error shape = error({{"x:0", Tensor(f32, {2, 4})}}, {"y:0"});
  EXPECT_EQ(shape.code(), Code::invalid_argument);
  EXPECT_THAT(shape.message(), AllOf(HasSubstr("'x:0'"), HasSubstr("[2,4]"), HasSubstr("[?,3]"),
                                     HasSubstr("model.cc:5")));
  const Error dtype = error({{"x:0", Tensor(i32, {2, 3})}}, {"y:0"});
  EXPECT_THAT(dtype.message(),
              AllOf(HasSubstr("int32"), HasSubstr("float"), HasSubstr("model.cc:5")));
  const Error unfed = error({}, {"y:0"});
  EXPECT_THAT(unfed.message(), AllOf(HasSubstr("You must feed a value for placeholder tensor 'x'"),
                                     HasSubstr("[[{{node x}}]]")));
  EXPECT_EQ(unfed.node(), "x");
  const Error uninitialised = error({}, {"w/read:0"});
  EXPECT_EQ(uninitialised.code(), Code::failed_precondition);
  EXPECT_THAT(uninitialised.message(), HasSubstr("Attempting to use uninitialized value w"));
  EXPECT_EQ(uninitialised.node(), "w/read");
  session.close();
  session.close();
  const Error closed = error({{"x:0", value}}, {"y:0"});
  EXPECT_EQ(closed.code(), Code::failed_precondition);
  EXPECT_EQ(closed.message(), "Session is closed.");
}

TEST(LocalSession, GrowsWithTheGraph) {
  Graph graph;
  const Output w = variable(graph, "w", {1});
  const Output init = assign(w, constant(graph, vector_of({1})));
  LocalSession session({}, one_cpu);
  session.extend(graph);
  session.run({}, {}, {init.node->name});
  const Output added = assign_add(w, constant(graph, vector_of({5})));
  EXPECT_EQ(thrown_by([&] { session.run({}, {added.name()}, {}); }).code(), Code::not_found);
  session.extend(graph);
  EXPECT_EQ(floats(session.run({}, {added.name()}, {})[0]), std::vector<float>{6});
  session.extend(graph);
  EXPECT_EQ(floats(session.run({}, {added.name()}, {})[0]), std::vector<float>{11});
}

TEST(LocalSession, EveryOrderOfASignatureSharesOneGraph) {
  Graph graph;
  const Output x = placeholder(graph, "x", f32, {1}), y = placeholder(graph, "y", f32, {1});
  graph.add({.op = "TestAdd", .name = "a", .inputs = {x, y}});
  graph.add({.op = "TestAdd", .name = "b", .inputs = {x, x}});
  LocalSession session({}, one_cpu);
  session.extend(graph);
  const Tensor one = vector_of({1}), two = vector_of({2});
  const auto ab = session.run({{"x:0", one}, {"y:0", two}}, {"a:0", "b:0"}, {});
  const auto ba = session.run({{"y", two}, {"x", one}}, {"b", "a:0"}, {});
  EXPECT_EQ(floats(ab[0]), std::vector<float>{3});
  EXPECT_EQ(floats(ab[1]), std::vector<float>{2});
  EXPECT_EQ(floats(ba[0]), std::vector<float>{2});
  EXPECT_EQ(floats(ba[1]), std::vector<float>{3});
  EXPECT_EQ(session.prepared_graphs(), 1u);
  // Concatenated names must not collide.
  EXPECT_EQ(thrown_by([&] {
              session.run({{"x:0", one}}, {"a:0b:0"}, {});
            }).code(),
            Code::not_found);
  EXPECT_EQ(session.prepared_graphs(), 1u) << "a failed build is not remembered";
}

TEST(LocalSession, BoundsItsCache) {
  Graph graph;
  const Output x = placeholder(graph, "x", f32, {1});
  for (int i = 0; i < 70; ++i)
    graph.add({.op = "TestAdd", .name = concat("y", i), .inputs = {x, x}});
  LocalSession session({}, one_cpu);
  session.extend(graph);
  const Tensor one = vector_of({1});
  for (int round = 0; round < 2; ++round) {
    for (int i = 0; i < 70; ++i)
      EXPECT_EQ(floats(session.run({{"x:0", one}}, {concat("y", i, ":0")}, {})[0])[0], 2);
  }
  EXPECT_EQ(session.prepared_graphs(), 64u);
}

TEST(LocalSession, PreparesCallables) {
  Graph graph;
  const Output x = placeholder(graph, "x", f32, {any}), y = placeholder(graph, "y", f32, {any});
  const Output z = op("TestAdd", {x, op("TestAdd", {y, y})});
  LocalSession session({}, one_cpu);
  session.extend(graph);
  const auto handle = session.make_callable({{"y:0", "x:0"}, {z.name()}, {}});
  EXPECT_TRUE(session.registered_graph(handle)->runs_on_caller());
  std::vector<Tensor> fetches;
  for (int i = 0; i < 3; ++i) {
    const Tensor feeds[] = {vector_of({1, 2}), vector_of({10, 20})};
    session.run_callable(handle, feeds, fetches);
    EXPECT_EQ(floats(fetches.at(0)), (std::vector<float>{12, 24}));
  }
  const Tensor one[] = {vector_of({1})};
  EXPECT_EQ(thrown_by([&] { session.run_callable(handle, one, fetches); }).code(),
            Code::invalid_argument);
  session.release_callable(handle);
  const Error released = thrown_by([&] { session.run_callable(handle, one, fetches); });
  EXPECT_EQ(released.code(), Code::invalid_argument);
  EXPECT_EQ(released.message(), concat("No such callable handle: ", handle));
}

TEST(LocalSession, NeverOverwritesFetches) {
  Graph graph;
  const Output x = placeholder(graph, "x", f32, {any});
  const Output y = op("TestAdd", {x, x});
  LocalSession session({}, one_cpu);
  session.extend(graph);
  const auto handle = session.make_callable({{"x:0"}, {y.name()}, {}});
  std::vector<Tensor> kept, fetches;
  for (float i = 0; i < 5; ++i) {
    const Tensor feeds[] = {vector_of({i})};
    session.run_callable(handle, feeds, fetches);
    kept.push_back(fetches[0]);
  }
  for (int i = 0; i < 5; ++i) EXPECT_EQ(floats(kept[i])[0], 2.0f * static_cast<float>(i));
}

class LocalSessionThreads : public testing::TestWithParam<int> {};
INSTANTIATE_TEST_SUITE_P(Threads, LocalSessionThreads, testing::Values(1, 2, 4));

TEST_P(LocalSessionThreads, EdgesBetweenDevicesCross) {
  Graph graph;
  Output x = placeholder(graph, "x", f32, {any});
  for (int i = 0; i < 6; ++i) {
    const DeviceScope scope(graph, concat("/cpu:", i % 2));
    x = op("TestAdd", {x, x});
  }
  LocalSession session({.threads = GetParam()}, two_cpus);
  session.extend(graph);
  const auto handle = session.make_callable({{"x:0"}, {x.name()}, {}});
  EXPECT_EQ(session.registered_graph(handle)->programs().size(), 2u);
  std::vector<Tensor> fetches;
  for (int i = 0; i < 50; ++i) {
    const Tensor feeds[] = {vector_of({static_cast<float>(i)})};
    session.run_callable(handle, feeds, fetches);
    EXPECT_EQ(floats(fetches[0])[0], 64.0f * static_cast<float>(i));
  }
}

TEST_P(LocalSessionThreads, DeadValuesCrossDevices) {
  Graph graph;
  const Output x = placeholder(graph, "x", f32, {1});
  const Output p = placeholder(graph, "p", DType::boolean, {});
  Node& branch = op_node(graph, "Switch", {x, p});
  Output yes;
  {
    const DeviceScope scope(graph, "/cpu:1");
    yes = op("TestFail", {branch.output(1)});
  }
  Node& merge = op_node(graph, "Merge", {branch.output(0), yes});
  LocalSession session({.threads = GetParam()}, two_cpus);
  session.extend(graph);
  for (const bool taken : {true, false, true}) {
    const auto fetched =
        session.run({{"x:0", vector_of({taken ? 1.0f : -1.0f})}, {"p:0", Tensor::scalar(taken)}},
                    {merge.output(1).name()}, {});
    EXPECT_EQ(fetched[0].item<int32_t>(), taken ? 1 : 0);
  }
  EXPECT_THAT(thrown_by([&] {
                session.run({{"x:0", vector_of({-1})}, {"p:0", Tensor::scalar(true)}},
                            {merge.output(1).name()}, {});
              }).message(),
              HasSubstr("sum is negative"));
}

TEST_P(LocalSessionThreads, DeadlineReportsWhatWasMissing) {
  Graph graph;
  const std::string gate = concat("deadline_gate", GetParam());
  Output y;
  {
    const DeviceScope scope(graph, "/cpu:1");
    const Output waited =
        graph.add({.op = "TestWait", .name = gate, .inputs = {placeholder(graph, "x", f32, {1})}})
            .output();
    y = op("TestAdd", {waited, waited});
  }
  {
    const DeviceScope scope(graph, "/cpu:0");
    y = op("TestAdd", {y, y});
  }
  LocalSession session({.threads = GetParam()}, two_cpus);
  session.extend(graph);
  std::thread opener([&] {
    EXPECT_TRUE(TestGate::of(gate).open({Code::cancelled, "the test is over"}));
  });
  const Error error = thrown_by([&] {
    session.run({{"x:0", vector_of({1})}}, {y.name()}, {},
                {.timeout = std::chrono::milliseconds(1)});
  });
  opener.join();
  // The opener may be faster than the deadline; then the step ends with its own status.
  if (error.code() == Code::deadline_exceeded) {
    EXPECT_THAT(
        error.message(),
        AllOf(HasSubstr("within 1 ms"),
              HasSubstr("of node TestAdd from /job:localhost/replica:0/task:0/device:CPU:1")));
  } else {
    EXPECT_EQ(error.code(), Code::cancelled);
  }
}

TEST_P(LocalSessionThreads, CloseEndsWaitingSteps) {
  Graph graph;
  const std::string gate = concat("close_gate", GetParam());
  const Output waited =
      graph.add({.op = "TestWait", .name = gate, .inputs = {placeholder(graph, "x", f32, {1})}})
          .output();
  const Output y = op("TestAdd", {waited, waited});
  LocalSession session({.threads = GetParam()}, one_cpu);
  session.extend(graph);
  Error error(Code::ok, "");
  std::thread runner([&] {
    error = thrown_by([&] { session.run({{"x:0", vector_of({1})}}, {y.name()}, {}); });
  });
  ASSERT_TRUE(TestGate::of(gate).has_visitor());
  std::thread closer([&] { session.close(); });
  while (thrown_by([&] { session.list_devices(); }).code() != Code::failed_precondition)
    std::this_thread::yield();
  // The kernel still waits; when it is done, the step ends at its next segment.
  ASSERT_TRUE(TestGate::of(gate).open());
  runner.join();
  closer.join();
  // The step may have ended before close() reached it.
  EXPECT_THAT(error.message(),
              testing::AnyOf("Step was cancelled by an explicit call to `Session::Close()`.",
                             "no error was thrown"));
}

TEST_P(LocalSessionThreads, BuildsOnceForManyThreads) {
  Graph graph;
  const Output x = placeholder(graph, "x", f32, {any});
  const Output y = op("TestAdd", {x, x});
  LocalSession session({.threads = GetParam()}, one_cpu);
  session.extend(graph);
  std::vector<std::thread> threads;
  std::atomic<int> wrong{0};
  for (int t = 0; t < 8; ++t) {
    threads.emplace_back([&, t] {
      for (int i = 0; i < 50; ++i) {
        const float value = static_cast<float>(t * 100 + i);
        if (floats(session.run({{"x:0", vector_of({value})}}, {y.name()}, {})[0])[0] != 2 * value)
          ++wrong;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(wrong, 0);
  EXPECT_EQ(session.prepared_graphs(), 1u);
}

TEST_P(LocalSessionThreads, RunStepsKeepsOrder) {
  Graph graph;
  const Output x = placeholder(graph, "x", f32, {1});
  const Output w = variable(graph, "w", {1});
  const Output init = assign(w, constant(graph, vector_of({0})));
  const Output sum = assign_add(w, x);
  LocalSession session({.threads = GetParam()}, one_cpu);
  session.extend(graph);
  session.run({}, {}, {init.node->name});
  const auto handle = session.make_callable({{"x:0"}, {sum.name()}, {}});
  for (int in_flight : {1, 2, 5}) {
    float expected = 0;
    session.run({}, {}, {init.node->name});
    int64_t results = 0;
    session.run_steps(
        handle, 100,
        [](int64_t step, std::vector<Tensor>& feeds) {
          feeds.push_back(vector_of({static_cast<float>(step)}));
        },
        [&](int64_t step, std::vector<Tensor>& fetches) {
          EXPECT_EQ(step, results++);
          expected += static_cast<float>(step);
          EXPECT_EQ(floats(fetches[0])[0], expected);
        },
        in_flight);
    EXPECT_EQ(results, 100);
  }
}

TEST_P(LocalSessionThreads, RunStepsEndsAtTheFirstError) {
  Graph graph;
  const Output y = op("TestFail", {placeholder(graph, "x", f32, {1})});
  LocalSession session({.threads = GetParam()}, one_cpu);
  session.extend(graph);
  const auto handle = session.make_callable({{"x:0"}, {y.name()}, {}});
  int64_t results = 0;
  const Error error = thrown_by([&] {
    session.run_steps(
        handle, 100,
        [](int64_t step, std::vector<Tensor>& feeds) {
          feeds.push_back(vector_of({step == 7 ? -1.0f : 1.0f}));
        },
        [&](int64_t, std::vector<Tensor>&) { ++results; }, 3);
  });
  EXPECT_EQ(results, 7);
  EXPECT_THAT(error.message(), AllOf(StartsWith("step 7: "), HasSubstr("sum is negative")));
  EXPECT_EQ(error.node(), y.node->name);
}

TEST(LocalSession, TracesAndListsDevices) {
  Graph graph;
  const Output x = placeholder(graph, "x", f32, {any});
  const Output y = op("TestAdd", {x, op("TestAdd", {x, x})});
  LocalSession session({}, two_cpus);
  session.extend(graph);
  RunMetadata metadata;
  const auto fetched =
      session.run({{"x:0", vector_of({2})}}, {y.name()}, {}, {.trace = true}, &metadata);
  EXPECT_EQ(floats(fetched[0])[0], 6);
  ASSERT_EQ(metadata.events.size(), 2u);
  EXPECT_EQ(metadata.events[0].op, "TestAdd");
  const auto devices = session.list_devices();
  ASSERT_EQ(devices.size(), 2u);
  EXPECT_EQ(devices[1].name, "/job:localhost/replica:0/task:0/device:CPU:1");
  EXPECT_EQ(devices[1].type, "CPU");
  EXPECT_GT(devices[0].memory_limit, 0);
}

// TensorFlow 1's w/read: its value is the variable's memory, so a user after an update sees the
// update, even if the update itself needs the value that was read. The same holds for its
// Identities.
TEST(LocalSession, UserOfAReadAfterAWriteSeesTheNewValue) {
  for (const bool feeds_write : {false, true}) {
    for (const bool is_chain : {false, true}) {
      Graph graph;
      const Output w = variable(graph, "w", {2});
      const Output init = assign(w, constant(graph, vector_of({1, 2})));
      Output read = op("Identity", {w});
      if (is_chain) read = op("Identity", {read});
      const Output step =
          feeds_write ? op("TestAdd", {read, read}) : constant(graph, vector_of({2, 4}));
      const Output updated = assign_add(w, step);
      Output user, again;
      {
        const ControlScope after(graph, std::vector<Output>{updated});
        user = op("TestAdd", {read, read});
      }
      {
        const ControlScope after(graph, std::vector<Output>{user});
        const Output twice = assign_add(w, constant(graph, vector_of({10, 10})));
        const ControlScope after_both(graph, std::vector<Output>{twice});
        again = op("TestAdd", {read, read});
      }
      LocalSession session({}, one_cpu);
      session.extend(graph);
      session.run({}, {}, {init.node->name});
      const auto fetched = session.run({}, {user.name(), again.name(), step.name()}, {});
      EXPECT_EQ(floats(fetched[0]), (std::vector<float>{6, 12}));
      EXPECT_EQ(floats(fetched[1]), (std::vector<float>{26, 32}));
      EXPECT_EQ(floats(fetched[2]), (std::vector<float>{2, 4})) << "what was computed before stays";
    }
  }
}

// As in TensorFlow, where the client gets the variable's memory; values computed before the update
// stay.
TEST(LocalSession, FetchOfAVariableSeesTheStepsUpdate) {
  Graph graph;
  const Output w = variable(graph, "w", {2});
  const Output init = assign(w, constant(graph, vector_of({1, 2})));
  const Output read = op("Identity", {w}), twice = op("TestAdd", {read, read});
  const Output updated = assign_add(w, twice);
  const Output chosen = placeholder(graph, "chosen", DType::boolean, {});
  const Output branch = op_outputs("RefSwitch", {w, chosen})[1];
  const Output in_branch = assign_add(branch, constant(graph, vector_of({100, 100})));
  LocalSession session({}, one_cpu);
  session.extend(graph);
  const auto fetch = [&](const std::vector<std::string>& targets, bool is_taken) {
    session.run({}, {}, {init.node->name});
    const auto fetched =
        session.run({{"chosen", Tensor::scalar(is_taken)}}, {"w:0", read.name()}, targets);
    EXPECT_EQ(floats(fetched[0]), floats(fetched[1]));
    return floats(fetched[0]);
  };
  EXPECT_EQ(fetch({}, true), (std::vector<float>{1, 2}));
  EXPECT_EQ(fetch({updated.node->name}, true), (std::vector<float>{3, 6}));
  EXPECT_EQ(fetch({in_branch.node->name}, true), (std::vector<float>{101, 102}));
  EXPECT_EQ(fetch({in_branch.node->name}, false), (std::vector<float>{1, 2}));
  session.run({}, {}, {init.node->name});
  EXPECT_EQ(floats(session.run({}, {twice.name()}, {updated.node->name})[0]),
            (std::vector<float>{2, 4}));
}

// In one segment with nodes that may be dead it would wait for itself.
TEST(LocalSession, ControlTriggerRunsBetweenNodesOfABranch) {
  Graph graph;
  const Output chosen = placeholder(graph, "chosen", DType::boolean, {});
  const Output taken = op_outputs("Switch", {constant(graph, vector_of({1})), chosen})[1];
  const Output twice = op("TestAdd", {taken, taken});
  Node& trigger = graph.add({.op = "ControlTrigger", .control_inputs = {twice.node}});
  graph.add(
      {.op = "TestAdd", .name = "again", .inputs = {twice, twice}, .control_inputs = {&trigger}});
  LocalSession session({}, one_cpu);
  session.extend(graph);
  EXPECT_EQ(floats(session.run({{"chosen", Tensor::scalar(true)}}, {"again:0"}, {})[0]),
            (std::vector<float>{4}));
}

}  // namespace
}  // namespace leat
