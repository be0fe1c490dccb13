// Sessions on a task of the same process: no wire, the same results.
#include "distributed/master/local_master.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "distributed/cluster_session.h"
#include "distributed/master/master.h"
#include "graph/ops.h"
#include "tests/support/expect_error.h"
#include "tests/support/gate.h"
#include "tests/support/in_process_cluster.h"

namespace leat {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using testing::HasSubstr;

constexpr const char* ps = "/job:ps/task:0";

class LocalSession : public testing::Test {
 protected:
  std::unique_ptr<SessionInterface> session(const Graph& graph) {
    SessionOptions options;
    options.target = cluster_.target("worker");
    options.timeout = seconds(60);
    auto session = make_cluster_session(options);
    session->extend(graph);
    return session;
  }

  InProcessCluster cluster_{{{"ps", 1}, {"worker", 1}}};
};

TEST_F(LocalSession, IsFoundByItsTargetWhileTheTaskLives) {
  const std::string target = cluster_.target("worker");
  EXPECT_NE(find_local_master(target), nullptr);
  EXPECT_NE(find_local_master(cluster_.target("ps")), nullptr);
  EXPECT_EQ(find_local_master("grpc://127.0.0.1:1"), nullptr);
  cluster_.kill("worker");
  EXPECT_EQ(find_local_master(target), nullptr);
  cluster_.restart("worker");
  EXPECT_NE(find_local_master(target), nullptr);
}

TEST_F(LocalSession, ComputesOverTheClusterAndSharesFeedsAndFetches) {
  Graph graph;
  Output w;
  {
    const DeviceScope on(graph, ps);
    w = graph.add({.op = "VariableV2", .name = "w", .attrs = {{"shape", Shape{2}}, {"dtype", f32}}})
            .output();
    graph.add({.op = "Assign",
               .name = "init",
               .inputs = {w, constant(graph, Tensor::of<float>({2}, {1, 2}))}});
  }
  const Output x = placeholder(graph, "x", f32, {any});
  graph.add({.op = "AddV2", .name = "y", .inputs = {w, x}});
  graph.add({.op = "Identity", .name = "same", .inputs = {x}});
  const auto session = this->session(graph);
  session->run({}, {}, {"init"});
  const Tensor fed = Tensor::of<float>({2}, {10, 20});
  const auto out = session->run({{"x:0", fed}}, {"same:0", "y:0", "same:0"}, {});
  EXPECT_EQ(out[1].to_string(), "float[2] [11, 22]");
  EXPECT_EQ(out[0].raw(), fed.raw());
  EXPECT_EQ(out[2].raw(), fed.raw());

  const auto callable = session->make_callable({{"x:0"}, {"y:0"}, {}});
  std::vector<Tensor> fetches;
  session->run_callable(callable, std::span(&fed, 1), fetches);
  EXPECT_EQ(fetches[0].to_string(), "float[2] [11, 22]");
  std::vector<float> results;
  session->run_steps(
      callable, 5,
      [](int64_t step, std::vector<Tensor>& feeds) {
        feeds.push_back(Tensor::of<float>({1}, {static_cast<float>(step)}));
      },
      [&](int64_t, std::vector<Tensor>& values) { results.push_back(values[0].data<float>()[0]); });
  EXPECT_EQ(results, (std::vector<float>{1, 2, 3, 4, 5}));

  // The graph grows; the client sends only the new nodes.
  graph.add({.op = "Neg", .name = "minus", .inputs = {w}});
  session->extend(graph);
  RunMetadata metadata;
  RunOptions options;
  options.trace = options.partition_graphs = true;
  EXPECT_EQ(session->run({}, {"minus:0"}, {}, options, &metadata)[0].to_string(),
            "float[2] [-1, -2]");
  EXPECT_FALSE(metadata.events.empty());
  EXPECT_EQ(metadata.partition_graphs.size(), 2u);
  ASSERT_EQ(session->list_devices().size(), 2u);
  EXPECT_EQ(session->list_devices()[0].name, "/job:worker/replica:0/task:0/device:CPU:0");
}

TEST_F(LocalSession, FailsLikeARemoteSession) {
  Graph graph;
  {
    const DeviceScope on(graph, ps);
    graph.add({.op = "VariableV2", .name = "w", .attrs = {{"shape", Shape{2}}, {"dtype", f32}}});
  }
  const auto local = session(graph);
  const auto remote = cluster_.session(graph);
  for (const char* fetch : {"w:0", "nobody:0"}) {
    const Status here = error_of([&] { local->run({}, {fetch}, {}); });
    const Status there = error_of([&] { remote->run({}, {fetch}, {}); });
    EXPECT_EQ(here.code, there.code);
    EXPECT_EQ(here.message, there.message);
  }
  EXPECT_EQ(error_of([&] { local->release_callable(7); }).code, Code::invalid_argument);
  local->close();
  EXPECT_EQ(error_of([&] { local->run({}, {"w:0"}, {}); }).code, Code::failed_precondition);
}

TEST_F(LocalSession, DeadlineReportsWhatTheStepWaitedFor) {
  Graph graph;
  {
    const DeviceScope on(graph, ps);
    gate(constant(graph, Tensor::of<float>({2}, {1, 2})), "local");
  }
  const auto session = this->session(graph);
  RunOptions options;
  options.timeout = milliseconds(300);
  const Status error = error_of([&] { session->run({}, {"TestGate:0"}, {}, options); });
  open_gate("local");
  EXPECT_EQ(error.code, Code::deadline_exceeded);
  EXPECT_THAT(error.message, HasSubstr("TestGate"));
}

TEST_F(LocalSession, FailsAfterItsTaskHasGone) {
  Graph graph;
  graph.add({.op = "Identity", .name = "y", .inputs = {constant(graph, Tensor::scalar(1.0f))}});
  const auto session = this->session(graph);
  cluster_.kill("worker");
  const Status error = error_of([&] { session->run({}, {"y:0"}, {}); });
  EXPECT_EQ(error.code, Code::unavailable);
  EXPECT_THAT(error.message, HasSubstr("has ended"));
}

}  // namespace
}  // namespace leat
