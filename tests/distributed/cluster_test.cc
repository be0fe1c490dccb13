// Sessions on a cluster of tasks in this process, through the public path: what steps compute,
// which sessions share variables, and which errors a client receives.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <future>
#include <numeric>
#include <thread>

#include "distributed/cluster_view.h"
#include "distributed/master/master.h"
#include "distributed/master/remote_master.h"
#include "distributed/worker/worker.h"
#include "graph/ops.h"
#include "graph/ops/raw.h"
#include "tests/support/eventually.h"
#include "tests/support/expect_error.h"
#include "tests/support/gate.h"
#include "tests/support/in_process_cluster.h"

namespace leat {
namespace {

using std::chrono::milliseconds;
using testing::AllOf;
using testing::HasSubstr;

constexpr const char* ps = "/job:ps/task:0";

Output variable(Graph& graph, const std::string& name, const Shape& shape,
                const std::string& device = ps) {
  const DeviceScope on(graph, device);
  Node& node =
      graph.add({.op = "VariableV2", .name = name, .attrs = {{"shape", shape}, {"dtype", f32}}});
  return node.output();
}

Output named(Output output, const std::string& name) {
  return output.graph().add({.op = "Identity", .name = name, .inputs = {output}}).output();
}

// w on the ps, "init" = w := value, "add" = w += one.
struct Counter {
  Graph graph;
  explicit Counter(float start = 0) {
    const Output w = variable(graph, "w", {2});
    const DeviceScope on(graph, ps);
    graph.add({.op = "Assign",
               .name = "init",
               .inputs = {w, constant(graph, Tensor::of<float>({2}, {start, start}))}});
    const Output one = constant(graph, Tensor::of<float>({2}, {1, 1}));
    graph.add({.op = "AssignAdd", .name = "add", .inputs = {w, one}});
  }
};

TEST(Cluster, StepsCrossTasks) {
  InProcessCluster cluster({{"ps", 1}, {"worker", 1}});
  Graph graph;
  const Output x = placeholder(graph, "x", f32, {any, 2});
  const Output w = variable(graph, "w", {2, 1});
  graph.add({.op = "Assign",
             .name = "init",
             .inputs = {w, constant(graph, Tensor::of<float>({2, 1}, {2, 3}))}});
  named(matmul(x, w), "y");
  const auto session = cluster.session(graph);
  session->run({}, {}, {"init"});
  const std::vector<Tensor> got =
      session->run({{"x:0", Tensor::of<float>({2, 2}, {1, 2, 3, 4})}}, {"y:0", "w"}, {});
  EXPECT_EQ(got[0].to_string(), "float[2,1] [[8], [18]]");
  EXPECT_EQ(got[1].to_string(), "float[2,1] [[2], [3]]");
}

// Chunks of several tasks, joined on each of them (graph/passes/receive_in_place.cc).
TEST(Cluster, ChunksAreReceivedIntoTheTensorThatJoinsThem) {
  constexpr int64_t n = 3, size = 70'000;
  InProcessCluster cluster({{"worker", n}});
  Graph graph;
  const auto worker = [](int64_t k) { return concat("/job:worker/task:", k); };
  std::vector<Output> chunks;
  for (int64_t k = 0; k < n; ++k) {
    const DeviceScope on(graph, worker(k));
    const Output x = placeholder(graph, concat("x", k), f32, {size});
    chunks.push_back(x * 2.0F);
  }
  std::vector<std::string> fetches;
  for (int64_t k = 0; k < n; ++k) {
    const DeviceScope on(graph, worker(k));
    std::vector<Output> parts = chunks;
    parts.push_back(constant(graph, Tensor::scalar(0)));
    const Output whole = op("ConcatV2", parts);
    named(whole + 0.5F, concat("y", k));
    // A chunk is read on its own, too, and the whole is changed in place.
    named(op("Neg", {chunks[static_cast<size_t>((k + 1) % n)]}), concat("z", k));
    fetches.push_back(concat("y", k));
    fetches.push_back(concat("z", k));
  }
  const auto session = cluster.session(graph);
  for (int step = 0; step < 4; ++step) {
    NamedTensors feeds;
    for (int64_t k = 0; k < n; ++k) {
      Tensor x(f32, {size});
      for (int64_t i = 0; i < size; ++i) x.data<float>()[i] = static_cast<float>(i + k * 7 + step);
      feeds.emplace_back(concat("x", k, ":0"), x);
    }
    const std::vector<Tensor> got = session->run(feeds, fetches, {});
    for (int64_t k = 0; k < n; ++k) {
      const Tensor &y = got[static_cast<size_t>(2 * k)], &z = got[static_cast<size_t>(2 * k + 1)];
      ASSERT_EQ(y.shape(), (Shape{n * size}));
      for (int64_t i = 0; i < n * size; ++i)
        ASSERT_EQ(y.data<float>()[i], 2 * static_cast<float>(i % size + i / size * 7 + step) + 0.5F)
            << k << ' ' << i;
      for (int64_t i = 0; i < size; ++i)
        ASSERT_EQ(z.data<float>()[i], -2 * static_cast<float>(i + (k + 1) % n * 7 + step)) << i;
    }
  }
}

// As in TensorFlow's cluster: the reference crosses while the update still waits for the worker.
TEST(Cluster, FetchCrossesBeforeAnUpdateThatWaitsForAnotherTask) {
  InProcessCluster cluster({{"ps", 1}, {"worker", 1}});
  Counter counter(1);
  const Output w = counter.graph.output("w:0");
  Output doubled;
  {
    const DeviceScope on(counter.graph, "/job:worker/task:0");
    doubled = counter.graph.add({.op = "AddV2", .name = "doubled", .inputs = {w, w}}).output();
  }
  {
    const DeviceScope on(counter.graph, ps);
    named(w, "w/read");
    counter.graph.add({.op = "Assign", .name = "update", .inputs = {w, doubled}});
  }
  const auto on_worker = cluster.session(counter.graph);
  const auto on_ps = cluster.session(counter.graph, "ps", 0);
  const auto step = [](const auto& session, const std::string& target) {
    const std::vector<Tensor> got = session->run({}, {"w:0", "w/read:0", "doubled:0"}, {target});
    EXPECT_EQ(got[0].to_string(), got[1].to_string());
    return got[0].to_string();
  };
  on_worker->run({}, {}, {"init"});
  EXPECT_EQ(step(on_worker, "update"), "float[2] [1, 1]");
  EXPECT_EQ(step(on_worker, "update"), "float[2] [2, 2]");
  EXPECT_EQ(step(on_ps, "update"), "float[2] [8, 8]") << "it does not cross";
  EXPECT_EQ(step(on_worker, "add"), "float[2] [9, 9]") << "nothing to wait for: as in one process";
  EXPECT_EQ(on_worker->run({}, {"update:0"}, {})[0].to_string(), "float[2] [18, 18]");
}

TEST(Cluster, SessionsOnDifferentTasksShareAVariable) {
  InProcessCluster cluster({{"ps", 1}, {"worker", 2}});
  Counter counter;
  const auto first = cluster.session(counter.graph, "worker", 0);
  const auto second = cluster.session(counter.graph, "worker", 1);
  first->run({}, {}, {"init"});
  second->run({}, {}, {"add"});
  EXPECT_EQ(first->run({}, {"w:0"}, {})[0].to_string(), "float[2] [1, 1]");
}

// One program uses references, the other a resource: neither sees the other's variable.
TEST(Cluster, VariablesOfBothKindsMayShareAName) {
  InProcessCluster cluster({{"ps", 1}, {"worker", 2}});
  Counter by_reference(1);
  Graph graph;
  {
    const DeviceScope on(graph, ps);
    const Output w =
        graph
            .add({.op = "VarHandleOp", .name = "w", .attrs = {{"shape", Shape{3}}, {"dtype", f32}}})
            .output();
    graph.add({.op = "AssignVariableOp",
               .name = "init",
               .inputs = {w, constant(graph, Tensor::of<float>({3}, {4, 5, 6}))}});
    graph.add({.op = "ReadVariableOp", .name = "read", .inputs = {w}, .attrs = {{"dtype", f32}}});
  }
  const auto first = cluster.session(by_reference.graph, "worker", 0),
             second = cluster.session(graph, "worker", 1);
  first->run({}, {}, {"init"});
  expect_error_with(Code::failed_precondition, "uninitialized",
                    [&] { second->run({}, {"read:0"}, {}); });
  second->run({}, {}, {"init"});
  first->run({}, {}, {"add"});
  EXPECT_EQ(second->run({}, {"read:0"}, {})[0].to_string(), "float[3] [4, 5, 6]");
  EXPECT_EQ(first->run({}, {"w:0"}, {})[0].to_string(), "float[2] [2, 2]");
}

TEST(Cluster, IsolatedSessionsHaveTheirOwnVariables) {
  InProcessCluster cluster({{"ps", 1}, {"worker", 1}});
  Counter counter;
  const auto shared = cluster.session(counter.graph);
  const auto isolated = cluster.session(counter.graph, "worker", 0, {.isolate_state = true});
  shared->run({}, {}, {"init"});
  EXPECT_EQ(error_of([&] { isolated->run({}, {"w:0"}, {}); }).code, Code::failed_precondition);
  isolated->run({}, {}, {"init"});
  isolated->run({}, {}, {"add"});
  EXPECT_EQ(shared->run({}, {"w:0"}, {})[0].to_string(), "float[2] [0, 0]");
}

TEST(Cluster, CountsAllConcurrentUpdatesFromManySessions) {
  InProcessCluster cluster({{"ps", 1}, {"worker", 2}});
  Counter counter;
  constexpr int steps = 100;
  cluster.session(counter.graph)->run({}, {}, {"init"});
  std::vector<std::thread> clients;
  for (int i = 0; i < 4; ++i) {
    clients.emplace_back([&, i] {
      const auto session = cluster.session(counter.graph, "worker", i % 2);
      for (int step = 0; step < steps; ++step) session->run({}, {}, {"add"});
    });
  }
  for (std::thread& client : clients) client.join();
  EXPECT_EQ(cluster.session(counter.graph)->run({}, {"w:0"}, {})[0].to_string(),
            "float[2] [400, 400]");
}

// Asynchronous gradient descent on the mean square of (x·w - y), two workers, two shards of w on
// two ps.
TEST(Cluster, TrainsATinyModelAsynchronously) {
  InProcessCluster cluster({{"ps", 2}, {"worker", 2}});
  const auto build = [](int worker) {
    Graph graph;
    const Output w = variable(graph, "w", {2, 1}, "/job:ps/task:0");
    const Output b = variable(graph, "b", {1}, "/job:ps/task:1");
    graph.add({.op = "Assign",
               .name = "init_w",
               .inputs = {w, constant(graph, Tensor::of<float>({2, 1}, {0, 0}))}});
    graph.add({.op = "Assign",
               .name = "init_b",
               .inputs = {b, constant(graph, Tensor::of<float>({1}, {0}))}});
    Output dw, db;
    {
      const DeviceScope on(graph, concat("/job:worker/task:", worker));
      const Output x = placeholder(graph, "x", f32, {4, 2});
      const Output y = placeholder(graph, "y", f32, {4, 1});
      const Output error = matmul(x, w) + b - y;
      dw = matmul(x, error, {.transpose_a = true});
      db = bias_add_grad(error);
    }
    const Output rate = constant(graph, Tensor::scalar(0.05f));
    graph.add({.op = "ApplyGradientDescent", .name = "train_w", .inputs = {w, rate, dw}});
    graph.add({.op = "ApplyGradientDescent", .name = "train_b", .inputs = {b, rate, db}});
    return graph;
  };
  const Tensor x = Tensor::of<float>({4, 2}, {0, 0, 0, 1, 1, 0, 1, 1});
  const Tensor y = Tensor::of<float>({4, 1}, {1, 3, 4, 6});  // 3 a + 2 b + 1
  const Graph chief = build(0);
  const auto session = cluster.session(chief);
  session->run({}, {}, {"init_w", "init_b"});
  std::vector<std::thread> workers;
  for (int worker = 0; worker < 2; ++worker) {
    workers.emplace_back([&, worker] {
      const Graph graph = build(worker);
      const auto session = cluster.session(graph, "worker", worker);
      for (int step = 0; step < 300; ++step)
        session->run({{"x:0", x}, {"y:0", y}}, {}, {"train_w", "train_b"});
    });
  }
  for (std::thread& worker : workers) worker.join();
  const std::vector<Tensor> got = session->run({}, {"w:0", "b:0"}, {});
  EXPECT_NEAR(got[0].span<float>()[0], 3, 1e-2);
  EXPECT_NEAR(got[0].span<float>()[1], 2, 1e-2);
  EXPECT_NEAR(got[1].span<float>()[0], 1, 1e-2);
}

TEST(Cluster, ErrorsHaveTheCodesAndMessagesThatClientsExpect) {
  InProcessCluster cluster({{"ps", 1}, {"worker", 1}});
  Counter counter;
  const Output x = placeholder(counter.graph, "x", f32, {2});
  named(x + 1, "y");
  const auto session = cluster.session(counter.graph);
  const Tensor two = Tensor::of<float>({2}, {1, 2});
  struct Case {
    std::function<void()> action;
    Code code;
    const char* text;
  };
  const Case cases[] = {
      {[&] { session->run({}, {"nobody:0"}, {}); }, Code::not_found, "nobody"},
      {[&] { session->run({}, {}, {"nobody"}); }, Code::not_found, "nobody"},
      {[&] {
         session->run({{"nobody:0", two}}, {"y:0"}, {});
       },
       Code::not_found, "nobody"},
      {[&] {
         session->run({{"x:0", two}, {"x", two}}, {"y:0"}, {});
       },
       Code::invalid_argument, "x:0"},
      {[&] {
         session->run({{"x:0", two}}, {"x:0"}, {});
       },
       Code::invalid_argument, "x:0"},
      {[&] {
         session->run({{"x:0", two}}, {"y:7"}, {});
       },
       Code::invalid_argument, "y:7"},
      {[&] { session->run({}, {"y:0"}, {}); }, Code::invalid_argument, "x"},
      {[&] {
         session->run({{"x:0", Tensor::scalar(1.0f)}}, {"y:0"}, {});
       },
       Code::invalid_argument, "x"},
      {[&] {
         session->run({{"x:0", Tensor::of<int32_t>({2}, {1, 2})}}, {"y:0"}, {});
       },
       Code::invalid_argument, "x"},
      {[&] { session->run({}, {}, {}); }, Code::invalid_argument,
       "Must specify at least one target to fetch or execute."},
      {[&] { session->run({}, {}, {"add"}); }, Code::failed_precondition,
       "Attempting to use uninitialized value w"},
  };
  for (const Case& each : cases) {
    const Status status = error_of(each.action);
    EXPECT_EQ(code_name(status.code), code_name(each.code)) << status.message;
    EXPECT_THAT(status.message, HasSubstr(each.text));
  }
  const Status of_node = error_of(cases[10].action);
  EXPECT_FALSE(of_node.node.empty());
  EXPECT_THAT(of_node.message, HasSubstr(node_text(of_node.node)));
  session->close();
  const Status closed = error_of([&] { session->run({}, {"y:0"}, {}); });
  EXPECT_EQ(closed.code, Code::failed_precondition);
  EXPECT_EQ(closed.message, "Session is closed.");
}

TEST(Cluster, SessionsCanBeExtended) {
  InProcessCluster cluster({{"ps", 1}, {"worker", 1}});
  Counter counter;
  const auto session = cluster.session(counter.graph);
  session->run({}, {}, {"init"});
  {
    const DeviceScope on(counter.graph, "/job:worker/task:0");
    named(Operand(counter.graph.output("w")) * 3 + 2, "more");
  }
  session->extend(counter.graph);
  EXPECT_EQ(session->run({}, {"more:0"}, {})[0].to_string(), "float[2] [2, 2]");
  session->run({}, {}, {"add"});
  EXPECT_EQ(session->run({}, {"more:0"}, {})[0].to_string(), "float[2] [5, 5]");
}

TEST(Cluster, ListsTheDevicesOfAllTasks) {
  InProcessCluster cluster({{"ps", 1}, {"worker", 2}});
  const auto session = cluster.session(Graph());
  std::vector<std::string> names;
  for (const DeviceDescription& device : session->list_devices()) {
    names.push_back(device.name);
    EXPECT_EQ(device.type, "CPU");
    EXPECT_NE(device.incarnation, 0u);
  }
  EXPECT_THAT(names, testing::UnorderedElementsAre("/job:ps/replica:0/task:0/device:CPU:0",
                                                   "/job:worker/replica:0/task:0/device:CPU:0",
                                                   "/job:worker/replica:0/task:1/device:CPU:0"));
  EXPECT_EQ(names.front(), "/job:worker/replica:0/task:0/device:CPU:0") << "the dialled task's";
}

TEST(Cluster, ResetClearsVariablesAndClosesSessions) {
  InProcessCluster cluster({{"ps", 1}, {"worker", 1}});
  Counter counter;
  const auto session = cluster.session(counter.graph);
  session->run({}, {}, {"init"});
  reset_containers(cluster.target("worker"), {});
  EXPECT_EQ(error_of([&] { session->run({}, {"w:0"}, {}); }).code, Code::aborted);
  const auto fresh = cluster.session(counter.graph);
  EXPECT_THAT(error_of([&] { fresh->run({}, {"w:0"}, {}); }).message,
              HasSubstr("uninitialized value w"));
}

TEST(Cluster, TracesNameNodesOfAllTasks) {
  InProcessCluster cluster({{"ps", 1}, {"worker", 1}});
  Counter counter;
  Output on_ps;
  {
    const DeviceScope on(counter.graph, ps);
    on_ps = Operand(counter.graph.output("w")) + 1;
  }
  {
    const DeviceScope on(counter.graph, "/job:worker/task:0");
    named(on_ps * 3, "y");
  }
  const auto session = cluster.session(counter.graph, "worker", 0, {.simplify = false});
  session->run({}, {}, {"init"});
  RunMetadata metadata;
  session->run({}, {"y:0"}, {}, {.trace = true, .partition_graphs = true}, &metadata);
  std::set<std::string> devices;
  for (const TraceEvent& event : metadata.events) {
    devices.insert(event.device);
    EXPECT_GE(event.end_ns, event.start_ns);
  }
  EXPECT_EQ(devices.size(), 2u);
  std::vector<std::string> computed;
  for (const TraceEvent& event : metadata.events)
    computed.push_back(concat(event.op, "(", event.inputs, ")"));
  EXPECT_THAT(computed, testing::Contains("AddV2(w, Const_2)"));
  EXPECT_EQ(metadata.partition_graphs.size(), 2u);
  // Nodes that no kernel computes are there, too.
  RunMetadata of_values;
  const std::string constant_name = constant(counter.graph, Tensor::scalar(1.0f)).name();
  session->extend(counter.graph);
  session->run({}, {"w:0", constant_name}, {}, {.trace = true}, &of_values);
  std::vector<std::string> ops;
  for (const TraceEvent& event : of_values.events) ops.push_back(event.op);
  EXPECT_THAT(ops, testing::UnorderedElementsAre("VariableV2", "Const"));
}

// A large value leaves as soon as it is there, while what does not need it runs on: its producer
// comes first, although it was made last. A small one goes with the rest.
TEST(Cluster, LargeValuesAreSentWhileTheSegmentRunsOn) {
  InProcessCluster cluster({{"ps", 1}, {"worker", 1}});
  for (const int64_t n : {300, 10}) {
    Graph graph;
    const Output x = placeholder(graph, "x", f32, {n, n});
    Output rest, large, sums;
    {
      const DeviceScope on(graph, "/job:worker/task:0");
      rest = x;
      for (int i = 0; i < 5; ++i) rest = matmul(rest, x);
      named(rest, "rest");
      large = tanh(x * 2);
    }
    {
      const DeviceScope on(graph, ps);
      sums = sum(large);
    }
    const auto session = cluster.session(graph);
    Tensor value(f32, {n, n});
    std::fill_n(value.data<float>(), value.elements(), 0.001f);
    for (int step = 0; step < 3; ++step) {
      RunMetadata metadata;
      const std::vector<Tensor> fetched =
          session->run({{"x:0", value}}, {"rest:0", sums.name()}, {}, {.trace = true}, &metadata);
      EXPECT_NEAR(fetched[1].item<float>(), static_cast<double>(n * n) * std::tanh(0.002),
                  static_cast<double>(n * n) * 1e-6);
      int64_t sent = 0, ended = 0;
      for (const TraceEvent& event : metadata.events) {
        if (event.op == "_Send" && event.output_bytes == static_cast<int64_t>(value.bytes()))
          sent = event.end_ns;
        if (event.op == "MatMul") ended = std::max(ended, event.end_ns);
      }
      ASSERT_GT(sent, 0);
      EXPECT_EQ(sent < ended, n == 300) << "sent " << sent << ", last product " << ended;
    }
  }
}

TEST(Cluster, TimeoutMayBeInfinite) {
  InProcessCluster cluster({{"ps", 1}, {"worker", 1}});
  Counter counter;
  const auto session =
      cluster.session(counter.graph, "worker", 0, {.timeout = std::chrono::milliseconds::max()});
  session->run({}, {}, {"init"});
  EXPECT_EQ(session->list_devices().size(), 2u);
}

TEST(Cluster, KilledTaskEndsTheStepAndReportsWhatItOwed) {
  InProcessCluster cluster({{"ps", 1}, {"worker", 1}});
  Graph graph;
  {
    const DeviceScope on(graph, ps);
    named(gate(constant(graph, Tensor::of<float>({2}, {1, 2})), "killed"), "slow");
  }
  {
    const DeviceScope on(graph, "/job:worker/task:0");
    named(Operand(graph.output("slow")) + 1, "y");
  }
  const auto session = cluster.session(graph);
  auto outcome = std::async(std::launch::async,
                            [&] { return error_of([&] { session->run({}, {"y:0"}, {}); }); });
  ASSERT_TRUE(wait_at_gate("killed"));
  cluster.kill("ps");
  ASSERT_EQ(outcome.wait_for(std::chrono::seconds(20)), std::future_status::ready);
  const Status status = outcome.get();
  EXPECT_EQ(code_name(status.code), code_name(Code::unavailable));
  EXPECT_THAT(status.message,
              AllOf(HasSubstr("/job:ps/task:0"), HasSubstr(cluster.spec().address({"ps", 0})),
                    HasSubstr("TestGate")));
  open_gate("killed");
}

TEST(Cluster, RestartedTaskAbortsOneStepAndLosesItsVariables) {
  InProcessCluster cluster({{"ps", 1}, {"worker", 1}});
  Counter counter(5);
  const auto session = cluster.session(counter.graph);
  session->run({}, {}, {"init"});
  session->run({}, {}, {"add"});
  cluster.restart("ps");
  const Status status = error_of([&] { session->run({}, {}, {"add"}); });
  EXPECT_EQ(code_name(status.code), code_name(Code::aborted)) << status.message;
  EXPECT_THAT(status.message, AllOf(HasSubstr("/job:ps/task:0"), HasSubstr("restarted")));
  EXPECT_THAT(error_of([&] { session->run({}, {}, {"add"}); }).message,
              HasSubstr("uninitialized value w"));
  session->run({}, {}, {"init"});
  session->run({}, {}, {"add"});
  EXPECT_EQ(session->run({}, {"w:0"}, {})[0].to_string(), "float[2] [6, 6]");
}

// If another program holds the port of a lost task, it answers at once that it is another task.
// That counts as a dead task: the step need not wait for its deadline.
TEST(Cluster, StrangerAtATasksAddressFailsItsStepsAndIsShown) {
  InProcessCluster cluster({{"ps", 1}, {"worker", 1}});
  Counter counter;
  const auto session =
      cluster.session(counter.graph, "worker", 0, {.timeout = std::chrono::seconds(30)});
  session->run({}, {}, {"init"});
  for (const bool is_same_task : {true, false}) {
    SCOPED_TRACE(is_same_task ? "of another cluster" : "another task");
    cluster.kill("ps");
    const TaskName name = is_same_task ? TaskName{"ps", 0} : TaskName{"other", 3};
    ClusterSpec spec;
    spec.add(name, cluster.spec().address({"ps", 0}));
    spec.set_id("another");
    const std::string reason = is_same_task ? "a task of another cluster answers there (process "
                                            : "/job:other/task:3 answers there (process ";
    {
      Task stranger(spec, name);
      stranger.start(spec);
      Status status;
      EXPECT_TRUE(eventually([&] {
        status = error_of([&] { session->run({}, {}, {"add"}); });
        return status.message.find(reason) != std::string::npos ||
               status.code == Code::deadline_exceeded;
      })) << status.message;
      EXPECT_EQ(code_name(status.code), code_name(Code::unavailable)) << status.message;
      EXPECT_THAT(status.message, HasSubstr(cluster.spec().address({"ps", 0})));
      EXPECT_THAT(to_text(view_cluster(cluster.target("worker"))), HasSubstr(reason));
    }
    cluster.restart("ps");
    EXPECT_TRUE(
        eventually([&] { return error_of([&] { session->run({}, {}, {"init"}); }).is_ok(); }));
  }
}

TEST(Cluster, StepThatNeverBeginsNamesTheMissingTask) {
  InProcessCluster cluster({{"ps", 1}, {"worker", 1}});
  Counter counter;
  const auto session = cluster.session(counter.graph);
  session->run({}, {}, {"init"});
  cluster.restart("ps");
  const Status restarted = error_of([&] { session->run({}, {}, {"add"}); });
  EXPECT_EQ(code_name(restarted.code), code_name(Code::aborted)) << restarted.message;
  cluster.kill("ps");
  const Status status = error_of(
      [&] { session->run({}, {}, {"add"}, {.timeout = std::chrono::seconds(3)}, nullptr); });
  EXPECT_EQ(code_name(status.code), code_name(Code::deadline_exceeded));
  EXPECT_THAT(status.message,
              AllOf(HasSubstr("/job:worker/task:0 waits for the identity of a task"),
                    HasSubstr("/job:ps/task:0"), HasSubstr("refused")));
}

TEST(Cluster, RestartedMasterDoesNotKnowTheSession) {
  InProcessCluster cluster({{"ps", 1}, {"worker", 1}});
  Counter counter;
  const auto session = cluster.session(counter.graph);
  session->run({}, {}, {"init"});
  cluster.restart("worker");
  const Status status = error_of([&] { session->run({}, {}, {"add"}); });
  EXPECT_EQ(code_name(status.code), code_name(Code::aborted));
  EXPECT_THAT(status.message, HasSubstr("is not found."));
  EXPECT_EQ(cluster.session(counter.graph)->run({}, {"w:0"}, {})[0].to_string(), "float[2] [0, 0]");
  EXPECT_TRUE(eventually([&] {
    return cluster.task("ps").worker().current_status().sessions <= 1;
  })) << "the old master's session is dropped";
}

TEST(Cluster, DeadTaskFailsStepsAndSessionsByName) {
  InProcessCluster cluster({{"ps", 1}, {"worker", 1}});
  Counter counter;
  const auto session = cluster.session(counter.graph);
  session->run({}, {}, {"init"});
  cluster.kill("ps");
  const Status step = error_of([&] { session->run({}, {}, {"add"}); });
  EXPECT_EQ(code_name(step.code), code_name(Code::unavailable));
  EXPECT_THAT(step.message,
              HasSubstr("/job:ps/task:0 (" + cluster.spec().address({"ps", 0}) + ")"));
  const Status create = error_of(
      [&] { cluster.session(counter.graph, "worker", 0, {.timeout = milliseconds(1'500)}); });
  EXPECT_EQ(code_name(create.code), code_name(Code::aborted));
  EXPECT_THAT(create.message,
              AllOf(HasSubstr("1 of 2 tasks did not answer"), HasSubstr("/job:ps/task:0")));
  // A session without the ps is possible.
  Graph local;
  named(constant(local, Tensor::scalar(1.0f)), "one");
  const auto alone = cluster.session(local, "worker", 0, {.device_filters = {"/job:worker"}});
  EXPECT_EQ(alone->run({}, {"one:0"}, {})[0].item<float>(), 1);
}

TEST(Cluster, DeadMasterIsNamedWithTheReason) {
  InProcessCluster cluster({{"worker", 1}});
  const std::string target = cluster.target("worker");
  Graph graph;
  named(constant(graph, Tensor::scalar(1.0f)), "one");
  const auto session = cluster.session(graph);
  cluster.kill("worker");
  const Status status = error_of([&] { session->run({}, {"one:0"}, {}); });
  EXPECT_EQ(code_name(status.code), code_name(Code::unavailable));
  EXPECT_THAT(status.message, AllOf(HasSubstr(target), HasSubstr("refused")));
}

TEST(Cluster, DeadlineReportsWhatTheStepWaitedFor) {
  InProcessCluster cluster({{"ps", 1}, {"worker", 1}});
  Graph graph;
  {
    const DeviceScope on(graph, ps);
    named(gate(constant(graph, Tensor::of<float>({2}, {1, 2})), "late"), "slow");
  }
  {
    const DeviceScope on(graph, "/job:worker/task:0");
    named(Operand(graph.output("slow")) + 1, "y");
  }
  const auto session = cluster.session(graph);
  const Status status =
      error_of([&] { session->run({}, {"y:0"}, {}, {.timeout = milliseconds(500)}); });
  EXPECT_EQ(code_name(status.code), code_name(Code::deadline_exceeded));
  EXPECT_THAT(status.message,
              AllOf(HasSubstr("/job:ps/task:0 (" + cluster.spec().address({"ps", 0}) +
                              ") runs TestGate node"),
                    HasSubstr("/job:worker/task:0 (" + cluster.spec().address({"worker", 0}) +
                              ") waits for tensor"),
                    HasSubstr(" from /job:ps/task:0, for 0.")));
  open_gate("late");
}

// Holds its thread until the test releases it.
struct Hold {
  std::promise<void> has_begun, may_end;
};
Hold* held = nullptr;
const Op hold_op{{
    .name = "TestHold",
    .doc = "Holds a thread of the task.",
    .kernels = {Kernel{.execute =
                           [](ExecuteContext&) {
                             held->has_begun.set_value();
                             held->may_end.get_future().wait();
                           }}},
    .is_stateful = true,
}};

TEST(Cluster, StepAbortedWhileWaitingForAThreadDoesNothing) {
  TaskOptions options = InProcessCluster::default_options();
  options.threads = 1;
  InProcessCluster cluster({{"ps", 1}, {"worker", 1}}, options);
  Counter counter;
  {
    const DeviceScope on(counter.graph, ps);
    counter.graph.add({.op = "TestHold", .name = "hold"});
    // Large enough that the ps runs it on its own thread, not on the one that delivers the request.
    const Output ones = op("Fill", {constant(counter.graph, Tensor::of<int32_t>({2}, {500, 500})),
                                    constant(counter.graph, Tensor::scalar(1.0f))});
    const Output product = named(op("MatMul", {ones, ones}), "product");
    counter.graph.add(
        {.op = "AssignAdd",
         .name = "train",
         .inputs = {
             counter.graph.output("w"),
             op("Reshape",
                {op("Slice", {product, constant(counter.graph, Tensor::of<int32_t>({2}, {0, 0})),
                              constant(counter.graph, Tensor::of<int32_t>({2}, {1, 2}))}),
                 constant(counter.graph, Tensor::of<int32_t>({1}, {2}))})}});
  }
  const auto session = cluster.session(counter.graph);
  session->run({}, {}, {"init"});
  session->run({}, {}, {"train"});
  Hold hold;
  held = &hold;
  auto holding = std::async(std::launch::async, [&] { session->run({}, {}, {"hold"}); });
  hold.has_begun.get_future().wait();
  const Status status =
      error_of([&] { session->run({}, {}, {"train"}, {.timeout = milliseconds(300)}); });
  EXPECT_EQ(code_name(status.code), code_name(Code::deadline_exceeded));
  EXPECT_THAT(status.message, AllOf(HasSubstr("waits for a free thread of the task"),
                                    HasSubstr("within its deadline (0.3 s)")));
  hold.may_end.set_value();
  holding.get();
  ASSERT_TRUE(
      eventually([&] { return cluster.task("ps").worker().current_status().running_steps == 0; }));
  EXPECT_EQ(session->run({}, {"w:0"}, {})[0].data<float>()[0], 500) << "once";
}

TEST(Cluster, CloseCancelsRunningSteps) {
  InProcessCluster cluster({{"ps", 1}, {"worker", 1}});
  Graph graph;
  {
    const DeviceScope on(graph, ps);
    named(gate(constant(graph, Tensor::of<float>({2}, {1, 2})), "closed"), "slow");
  }
  {
    const DeviceScope on(graph, "/job:worker/task:0");
    named(Operand(graph.output("slow")) + 1, "y");
  }
  const auto session = cluster.session(graph);
  auto outcome = std::async(std::launch::async,
                            [&] { return error_of([&] { session->run({}, {"y:0"}, {}); }); });
  ASSERT_TRUE(wait_at_gate("closed"));
  session->close();
  const Status status = outcome.get();
  EXPECT_EQ(code_name(status.code), code_name(Code::cancelled));
  EXPECT_THAT(status.message,
              HasSubstr("Step was cancelled by an explicit call to `Session::Close()`."));
  EXPECT_EQ(cluster.task("worker").master().sessions(), 0u);
  open_gate("closed");
  EXPECT_TRUE(
      eventually([&] { return cluster.task("ps").worker().current_status().running_steps == 0; }));
}

TEST(Cluster, ReportsTheFirstErrorNotTheCancellations) {
  InProcessCluster cluster({{"ps", 2}, {"worker", 1}});
  Graph graph;
  const Output v = variable(graph, "never_set", {2}, "/job:ps/task:1");
  {
    const DeviceScope on(graph, "/job:ps/task:0");
    named(gate(constant(graph, Tensor::of<float>({2}, {1, 2})), "first"), "slow");
  }
  {
    const DeviceScope on(graph, "/job:worker/task:0");
    named(Operand(graph.output("slow")) + v, "y");
  }
  const auto session = cluster.session(graph);
  const Status status = error_of([&] { session->run({}, {"y:0"}, {}); });
  EXPECT_EQ(code_name(status.code), code_name(Code::failed_precondition)) << status.message;
  EXPECT_THAT(status.message, HasSubstr("uninitialized value never_set"));
  open_gate("first");
}

TEST(Cluster, LargeFeedsAndFetchesCross) {
  InProcessCluster cluster({{"ps", 1}, {"worker", 1}});
  Graph graph;
  const Output x = placeholder(graph, "x", f32, {any});
  {
    const DeviceScope on(graph, ps);
    named(x + 1, "y");
  }
  const auto session = cluster.session(graph);
  Tensor large(f32, {3 << 20});
  std::iota(large.data<float>(), large.data<float>() + large.elements(), 0.0f);
  const Tensor got = session->run({{"x:0", large}}, {"y:0"}, {})[0];
  ASSERT_EQ(got.shape(), large.shape());
  for (const int64_t i : {int64_t{0}, int64_t{12'345}, large.elements() - 1}) {
    EXPECT_EQ(got.data<float>()[i], large.data<float>()[i] + 1);
  }
}

TEST(Cluster, RunStepsKeepsSeveralStepsInFlightAndInOrder) {
  InProcessCluster cluster({{"ps", 1}, {"worker", 1}});
  Counter counter;
  const Output x = placeholder(counter.graph, "x", f32, {});
  named(x * 2, "twice");
  const auto session = cluster.session(counter.graph);
  session->run({}, {}, {"init"});
  const auto callable = session->make_callable({{"x"}, {"twice:0"}, {"add"}});
  std::vector<float> got;
  int most = 0, begun = 0;
  session->run_steps(
      callable, 20,
      [&](int64_t step, std::vector<Tensor>& feeds) {
        feeds.push_back(Tensor::scalar(static_cast<float>(step)));
        most = std::max(most, ++begun - static_cast<int>(got.size()));
      },
      [&](int64_t step, std::vector<Tensor>& fetches) {
        EXPECT_EQ(fetches.at(0).item<float>(), 2.0f * static_cast<float>(step));
        got.push_back(fetches[0].item<float>());
      },
      4);
  EXPECT_EQ(got.size(), 20u);
  EXPECT_EQ(most, 4);
  EXPECT_EQ(session->run({}, {"w:0"}, {})[0].to_string(), "float[2] [20, 20]");
}

TEST(Cluster, ShortSessionsLeaveNothingBehind) {
  InProcessCluster cluster({{"ps", 1}, {"worker", 1}});
  Counter counter;
  cluster.session(counter.graph)->run({}, {}, {"init"});
  for (int i = 0; i < 30; ++i) cluster.session(counter.graph)->run({}, {"w:0"}, {"add"});
  EXPECT_EQ(cluster.task("worker").master().sessions(), 0u);
  EXPECT_TRUE(eventually([&] {
    const WorkerStatus status = cluster.task("ps").worker().current_status();
    return status.sessions == 0 && status.graphs == 0 && status.running_steps == 0;
  }));
}

TEST(Cluster, SignaturesThatDifferInOrderShareAProgram) {
  InProcessCluster cluster({{"ps", 1}, {"worker", 1}});
  Counter counter;
  const auto session = cluster.session(counter.graph);
  session->run({}, {}, {"init"});
  named(counter.graph.output("w"), "a");
  named(counter.graph.output("w"), "b");
  session->extend(counter.graph);
  session->run({}, {"a:0", "b:0"}, {});
  const int64_t graphs = cluster.task("ps").worker().current_status().graphs;
  session->run({}, {"b:0", "a"}, {});
  EXPECT_EQ(cluster.task("ps").worker().current_status().graphs, graphs);
}

}  // namespace
}  // namespace leat
