// What `leat top` shows: the steps of all tasks and what each waits for, and what a master waits
// for.
#include "distributed/cluster_view.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <future>

#include "distributed/master/master.h"
#include "distributed/master/remote_master.h"
#include "distributed/wait_list.h"
#include "graph/ops.h"
#include "tests/support/eventually.h"
#include "tests/support/expect_error.h"
#include "tests/support/gate.h"
#include "tests/support/in_process_cluster.h"

namespace leat {
namespace {

using testing::AllOf;
using testing::ContainsRegex;
using testing::HasSubstr;

TEST(ClusterView, ShowsWhichTaskWaitsForWhich) {
  InProcessCluster cluster({{"ps", 1}, {"worker", 2}});
  Graph graph;
  Output slow;
  {
    const DeviceScope on(graph, "/job:ps/task:0");
    slow = gate(constant(graph, Tensor::of<float>({2}, {1, 2})), "viewed");
  }
  {
    const DeviceScope on(graph, "/job:worker/task:0");
    graph.add({.op = "Identity", .name = "y", .inputs = {slow + 1}});
  }
  const auto session = cluster.session(graph);
  auto step = std::async(std::launch::async, [&] { return session->run({}, {"y:0"}, {}); });
  ASSERT_TRUE(wait_at_gate("viewed"));
  std::string text;
  EXPECT_TRUE(eventually([&] {
    text = to_text(view_cluster(cluster.target("worker", 1)));
    return text.find("waits for tensor") != std::string::npos;
  }));
  EXPECT_THAT(
      text,
      AllOf(ContainsRegex("/job:ps/task:0 +[0-9.]+ s +runs TestGate node TestGate"),
            ContainsRegex("/job:worker/task:0 session [0-9a-f]+ "),
            ContainsRegex("/job:worker/task:0 +[0-9.]+ s +waits for tensor edge_0_TestGate of node "
                          "TestGate +/job:ps/task:0"),
            ContainsRegex("/job:worker/task:1 +127.0.0.1:[0-9]+ .* CPU:0 .* answers")))
      << text;
  open_gate("viewed");
  step.get();
  EXPECT_TRUE(eventually([&] {
    return to_text(view_cluster(cluster.target("ps"))).find("No step runs") != std::string::npos;
  }));
}

TEST(ClusterView, ShowsALostTaskAndTheMasterWaitingForIt) {
  InProcessCluster cluster({{"ps", 1}, {"worker", 1}});
  cluster.kill("ps");
  Graph graph;
  {
    const DeviceScope on(graph, "/job:ps/task:0");
    graph.add({.op = "Identity", .name = "y", .inputs = {constant(graph, Tensor::scalar(1.0f))}});
  }
  auto creating = std::async(std::launch::async, [&] {
    expect_error_with(Code::aborted, "/job:ps/task:0", [&] {
      cluster.session(graph, "worker", 0, {.timeout = std::chrono::seconds(5)});
    });
  });
  const std::string address = cluster.spec().address({"ps", 0});
  std::string text;
  EXPECT_TRUE(eventually([&] {
    text = to_text(view_cluster(cluster.target("worker")));
    return text.find("waits for the identity of a task") != std::string::npos;
  })) << text;
  EXPECT_THAT(text,
              AllOf(ContainsRegex("/job:ps/task:0 +" + address + " .*refused.*last heard"),
                    ContainsRegex("/job:worker/task:0 +[0-9.]+ s +waits for the identity of a task "
                                  ".*/job:ps/task:0")))
      << text;
  creating.wait();
}

// Also what was sent to a task that is gone.
TEST(ClusterView, CountsTheBytesThatATaskHasSent) {
  InProcessCluster cluster({{"ps", 1}, {"worker", 1}});
  Graph graph;
  Output x = graph.add({.op = "Placeholder", .name = "x", .attrs = {{"dtype", f32}}}).output();
  {
    const DeviceScope on(graph, "/job:ps/task:0");
    x = graph.add({.op = "Exp", .name = "on_ps", .inputs = {x}}).output();
  }
  {
    const DeviceScope on(graph, "/job:worker/task:0");
    graph.add({.op = "Neg", .name = "y", .inputs = {x}});
  }
  const auto sent = [&](const char* job) {
    for (const TaskView& task : view_cluster(cluster.target("ps")).tasks) {
      if (task.task.job == job) return task.sent_bytes;
    }
    return uint64_t{0};
  };
  EXPECT_EQ(sent("ps"), 0u);
  cluster.session(graph)->run({{"x:0", Tensor(f32, {1000})}}, {"y:0"}, {});
  EXPECT_GE(sent("ps"), 4000u);
  EXPECT_LE(sent("ps"), 4200u);
  EXPECT_EQ(sent("worker"), 0u) << "the fetch goes to the client";
  cluster.kill("worker");
  EXPECT_GE(sent("ps"), 4000u);
}

TEST(ClusterView, ListsUnusedSessionsAndClosesThem) {
  InProcessCluster cluster({{"worker", 1}});
  Graph graph;
  graph.add({.op = "Identity", .name = "y", .inputs = {constant(graph, Tensor::scalar(1.0f))}});
  const auto session = cluster.session(graph);
  Master& master = cluster.task("worker").master();
  EXPECT_TRUE(master.idle_sessions().empty()) << "a minute has not passed";
  const std::vector<StepActivity> idle = master.idle_sessions(std::chrono::seconds(0));
  ASSERT_EQ(idle.size(), 1u);
  const std::string text = idle[0].to_string();
  const std::string handle = text.substr(text.find("session ") + 8, 16);
  close_session(cluster.target("worker"), handle);
  EXPECT_EQ(master.sessions(), 0u);
  expect_error_with(Code::aborted, "is not found",
                    [&] { close_session(cluster.target("worker"), handle); });
  expect_error_with(Code::aborted, "is not found", [&] { session->run({}, {"y:0"}, {}); });
}

TEST(ClusterView, UnreachableTargetFailsWithTheReason) {
  InProcessCluster cluster({{"worker", 1}});
  const std::string target = cluster.target("worker");
  cluster.kill("worker");
  expect_error_with(Code::unavailable, "refused", [&] { view_cluster(target); });
  expect_error_with(Code::invalid_argument, "grpc://host:port",
                    [&] { view_cluster("10.0.0.1:80"); });
}

TEST(WaitList, ListsUntilTheHandleIsReleased) {
  WaitList list;
  auto first = list.add([] { return std::vector<StepActivity>{{"waits for a", "b", 0}}; });
  const auto second = list.add([] {
    return std::vector<StepActivity>{{"waits for c", "d", 1'200'000'000}, {"was told", "", 0}};
  });
  EXPECT_EQ(list.now().size(), 3u);
  first.reset();
  ASSERT_EQ(list.now().size(), 2u);
  EXPECT_EQ(list.now()[0].to_string(), "waits for c from d, for 1.2 s");
  EXPECT_EQ(list.now()[1].to_string(), "was told");
}

}  // namespace
}  // namespace leat
