// Tasks whose cluster specs are incomplete: of any two tasks, one must know the other.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "distributed/cluster/membership.h"
#include "distributed/cluster_session.h"
#include "distributed/task.h"
#include "graph/ops.h"
#include "tests/support/expect_error.h"

namespace leat {
namespace {

using testing::AllOf;
using testing::AnyOf;
using testing::HasSubstr;

const TaskName a0{"a", 0}, b0{"b", 0}, b1{"b", 1}, c0{"c", 0};

// Tasks on loopback, each started with its own cluster spec.
class SparseSpecs : public testing::Test {
 protected:
  void add(const TaskName& name) {
    ClusterSpec own;
    own.add(name, "127.0.0.1:0");
    tasks_[name] = std::make_unique<Task>(own, name, TaskOptions{.threads = 2});
  }
  void start(const TaskName& name, const std::vector<TaskName>& known) {
    ClusterSpec spec;
    for (const TaskName& task : known) spec.add(task, tasks_.at(task)->address());
    tasks_.at(name)->start(spec);
  }
  std::unique_ptr<SessionInterface> session(const Graph& graph, const TaskName& task) {
    SessionOptions options;
    options.target = tasks_.at(task)->target();
    options.timeout = std::chrono::seconds(20);
    auto out = make_grpc_session(options);
    out->extend(graph);
    return out;
  }
  // put fills a queue on `home` with 10, sum:0 is its element + 5 on `reader`.
  static Graph queue_graph(const std::string& home, const std::string& reader) {
    Graph graph;
    Output element;
    {
      const DeviceScope on(graph, home);
      const Output q = graph
                           .add({.op = "FIFOQueueV2",
                                 .attrs = {{"component_types", std::vector<DType>{i64}},
                                           {"shapes", std::vector<Shape>{Shape{}}},
                                           {"shared_name", "a_queue"}}})
                           .output();
      graph.add({.op = "QueueEnqueueV2",
                 .name = "put",
                 .inputs = {q, constant(graph, Tensor::scalar<int64_t>(10))}});
      element = graph
                    .add({.op = "QueueDequeueV2",
                          .inputs = {q},
                          .attrs = {{"component_types", std::vector<DType>{i64}}}})
                    .output();
    }
    const DeviceScope on(graph, reader);
    graph.add({.op = "AddV2",
               .name = "sum",
               .inputs = {element, constant(graph, Tensor::scalar<int64_t>(5))}});
    return graph;
  }
  int64_t sum(SessionInterface& session) {
    session.run({}, {}, {"put"});
    return session.run({}, {"sum:0"}, {})[0].item<int64_t>();
  }

  std::map<TaskName, std::unique_ptr<Task>> tasks_;
};

TEST_F(SparseSpecs, DialledTaskLearnsOfItsPeer) {
  for (const TaskName& task : {a0, b0, b1}) add(task);
  start(a0, {a0, b0});
  start(b0, {a0, b0});
  start(b1, {a0, b1});
  tasks_[a0]->wait_for_peers();
  tasks_[b1]->wait_for_peers();
  const auto client = session(queue_graph("/job:a/task:0", "/job:b/task:1"), b1);
  EXPECT_EQ(sum(*client), 15);
  // Nobody waits for a task that has gone, and the others continue.
  tasks_[b1]->shutdown();
  tasks_[a0]->wait_for_peers(std::chrono::milliseconds(5'000));
  EXPECT_EQ(sum(*session(queue_graph("/job:a/task:0", "/job:b/task:0"), b0)), 15);
}

// b:1, which would dial, does not know a:0, so a:0 dials.
TEST_F(SparseSpecs, LesserTaskDialsIfTheGreaterCannot) {
  for (const TaskName& task : {a0, b0, b1}) add(task);
  start(b1, {b0, b1});
  start(a0, {a0, b1});
  tasks_[a0]->wait_for_peers(std::chrono::milliseconds(10'000));
  const auto client = session(queue_graph("/job:b/task:1", "/job:a/task:0"), a0);
  EXPECT_EQ(sum(*client), 15);
}

// Complete specs beside specs that list only the servers and the task itself.
TEST_F(SparseSpecs, SpecMayBeAPartOfAnother) {
  for (const TaskName& task : {a0, b0, b1}) add(task);
  start(a0, {a0, b0, b1});
  start(b0, {a0, b0});
  start(b1, {a0, b1});
  tasks_[a0]->wait_for_peers();
  EXPECT_EQ(sum(*session(queue_graph("/job:a/task:0", "/job:b/task:0"), b0)), 15);
  EXPECT_EQ(sum(*session(queue_graph("/job:a/task:0", "/job:b/task:1"), b1)), 15);
}

TEST_F(SparseSpecs, UnconnectablePairReportsWhichSpecLacksWhichTask) {
  for (const TaskName& task : {b0, b1, c0}) add(task);
  start(c0, {b0, b1, c0});
  start(b0, {b0, c0});
  start(b1, {b1, c0});
  tasks_[c0]->wait_for_peers();
  const auto client = session(queue_graph("/job:b/task:0", "/job:b/task:1"), c0);
  try {
    sum(*client);
    FAIL() << "ran";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), Code::failed_precondition);
    EXPECT_THAT(
        std::string(error.message()),
        AnyOf(HasSubstr("the cluster's description of /job:b/task:0 has no /job:b/task:1"),
              HasSubstr("the cluster's description of /job:b/task:1 has no /job:b/task:0")));
  }
}

}  // namespace
}  // namespace leat
