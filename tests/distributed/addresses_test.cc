// Where tasks listen and how peers find them: IPv6, names, names that resolve only later.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <climits>

#include "distributed/cluster/membership.h"
#include "distributed/cluster_session.h"
#include "distributed/grpc/rpc_server.h"
#include "distributed/task.h"
#include "graph/ops.h"
#include "tests/support/expect_error.h"

namespace leat {
namespace {

using testing::HasSubstr;

class Addresses : public testing::TestWithParam<const char*> {};
INSTANTIATE_TEST_SUITE_P(
    Hosts, Addresses, testing::Values("127.0.0.1", "[::1]", "localhost"), [](const auto& info) {
      return std::string(info.param[0] == '[' ? "Ipv6" : info.param[0] == 'l' ? "Name" : "Ipv4");
    });

TEST_P(Addresses, ConnectTasksAndClients) {
  ClusterSpec spec;
  const std::string any_port = std::string(GetParam()) + ":0";
  spec.add({"ps", 0}, any_port);
  spec.add({"worker", 0}, any_port);
  spec.set_id("addresses");
  std::unique_ptr<Task> ps, worker;
  try {
    ps = std::make_unique<Task>(spec, TaskName{"ps", 0}, TaskOptions{.threads = 1});
  } catch (const Error& error) {
    if (any_port[0] == '[') GTEST_SKIP() << "no IPv6 on this machine: " << error.message();
    throw;
  }
  worker = std::make_unique<Task>(spec, TaskName{"worker", 0}, TaskOptions{.threads = 1});
  spec.set_address({"ps", 0}, ps->address());
  spec.set_address({"worker", 0}, worker->address());
  EXPECT_THAT(worker->target(), HasSubstr(GetParam()));
  ps->start(spec);
  worker->start(spec);
  worker->wait_for_peers();
  Graph graph;
  {
    const DeviceScope on(graph, "/job:ps/task:0");
    graph.add(
        {.op = "AddV2",
         .name = "y",
         .inputs = {placeholder(graph, "x", f32, {}), constant(graph, Tensor::scalar(1.0f))}});
  }
  SessionOptions options;
  options.target = worker->target();
  const auto session = make_grpc_session(options);
  session->extend(graph);
  EXPECT_EQ(session->run({{"x:0", Tensor::scalar(2.0f)}}, {"y:0"}, {})[0].item<float>(), 3);
}

TEST(Address, OfAnotherHostFailsWithTheReason) {
  ClusterSpec spec;
  spec.add({"ps", 0}, "192.0.2.1:0");  // reserved for documentation
  const Status status = error_of([&] { Task(spec, TaskName{"ps", 0}, TaskOptions{.threads = 1}); });
  EXPECT_EQ(code_name(status.code), code_name(Code::unavailable));
  const std::string& text = status.message;
  EXPECT_EQ(text.find("/job:ps/task:0 cannot listen on 192.0.2.1:0: "), 0u) << text;
  EXPECT_EQ(text.find("cannot listen"), text.rfind("cannot listen")) << text;
}

TEST(Address, TakenByATaskNamesThatTask) {
  const TaskName name{"worker", 1};
  ClusterSpec spec;
  spec.add(name, "127.0.0.1:0");
  spec.set_id("taken");
  const Task first(spec, name, TaskOptions{.threads = 1});
  spec.set_address(name, first.address());
  char host[HOST_NAME_MAX + 1] = {};
  gethostname(host, HOST_NAME_MAX);
  const Status status = error_of([&] { Task(spec, name, TaskOptions{.threads = 1}); });
  EXPECT_EQ(code_name(status.code), code_name(Code::unavailable));
  EXPECT_EQ(status.message,
            concat("/job:worker/task:1 cannot listen on ", first.address(),
                   ": Address already in use: /job:worker/task:1 already uses it, process ",
                   getpid(), " on ", host, ", cluster taken"));
}

TEST(Address, TakenByAnotherProgramFails) {
  RpcServer other;  // serves gRPC, but is not a task
  const std::string address = concat("127.0.0.1:", other.start("127.0.0.1:0"));
  ClusterSpec spec;
  spec.add({"worker", 1}, address);
  const Status status = error_of([&] {
    Task(spec, TaskName{"worker", 1}, TaskOptions{.threads = 1});
  });
  EXPECT_THAT(status.message,
              HasSubstr(address + ": Address already in use: a program that is not a "
                                  "Leat task uses it"));
}

TEST(Address, TaskWaitsForAnUnresolvableName) {
  ClusterSpec spec;
  spec.add({"ps", 0}, "ps.invalid:2222");
  spec.add({"worker", 0}, "127.0.0.1:0");
  spec.set_id("late");
  Task worker(spec, TaskName{"worker", 0}, TaskOptions{.threads = 1});
  spec.set_address({"worker", 0}, worker.address());
  worker.start(spec);
  expect_error_with(Code::unavailable, "ps.invalid:2222",
                    [&] { worker.wait_for_peers(std::chrono::milliseconds(1'500)); });
  EXPECT_EQ(peer_state_name(worker.membership().peer({"ps", 0}).state), "unresolvable");
}

}  // namespace
}  // namespace leat
