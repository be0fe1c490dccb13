// TensorFlow's MasterService byte by byte, from a client that consists of a connection and the wire
// format.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <future>

#include "distributed/grpc/rpc_client.h"
#include "distributed/master/master.h"
#include "distributed/rpc_status.h"
#include "graph/import/graph_def.h"
#include "graph/ops.h"
#include "tests/support/counter_graph.h"
#include "tests/support/eventually.h"
#include "tests/support/gate.h"
#include "tests/support/in_process_cluster.h"
#include "tests/support/wire.h"

namespace leat {
namespace {

using testing::HasSubstr;
using wire_format::fields;
using wire_format::number;
using wire_format::text;

class RawClient {
 public:
  explicit RawClient(InProcessCluster& cluster) : client_(cluster.task("worker").address()) {}

  std::pair<RpcStatus, std::string> call(const std::string& method, const std::string& request) {
    return client_.call_and_wait("/tensorflow.MasterService/" + method, request);
  }
  std::string answer(const std::string& method, const std::string& request) {
    const auto [status, reply] = call(method, request);
    EXPECT_TRUE(status.is_ok()) << method << ": " << status.message;
    return reply;
  }
  std::string create(const Graph& graph, const std::string& config = "") {
    const auto reply =
        fields(answer("CreateSession", text(1, to_graph_def(graph)) + text(2, config)));
    EXPECT_EQ(reply.count(2), 0u) << "graph_version is 0, which proto3 leaves out";
    return reply.find(1)->second;
  }

 private:
  RpcClient client_;
};

// w += 1 on the ps.
Graph counter() {
  Graph graph;
  const DeviceScope on(graph, "/job:ps/task:0");
  add_counter(graph);
  return graph;
}

std::string run_step(const std::string& session, const std::string& rest, uint64_t request_id) {
  return text(1, session) + rest + number(7, 1) + number(8, request_id);
}

float fetched(const std::string& reply) {
  const auto all = fields(reply);
  EXPECT_EQ(all.count(4), 0u) << all.find(4)->second;
  return from_tensor_proto(fields(all.find(1)->second).find(2)->second).item<float>();
}

TEST(MasterService, RepeatedRequestRunsOnceAndGetsTheFirstAnswer) {
  InProcessCluster cluster({{"ps", 1}, {"worker", 1}});
  RawClient client(cluster);
  const std::string session = client.create(counter());
  client.answer("RunStep", run_step(session, text(4, "init"), 1));
  const std::string request = run_step(session, text(3, "w:0") + text(4, "add"), 2);
  const std::string first = client.answer("RunStep", request);
  EXPECT_EQ(client.answer("RunStep", request), first);
  client.answer("RunStep", run_step(session, text(4, "add"), 3));
  EXPECT_EQ(client.answer("RunStep", request), first) << "also later";
  EXPECT_EQ(fetched(client.answer("RunStep", run_step(session, text(3, "w:0"), 4))), 2);
}

TEST(MasterService, ReturnsFetchesUnderTheRequestedNames) {
  InProcessCluster cluster({{"ps", 1}, {"worker", 1}});
  RawClient client(cluster);
  const std::string session = client.create(counter());
  client.answer("RunStep", run_step(session, text(4, "init"), 1));
  const auto reply =
      fields(client.answer("RunStep", run_step(session, text(3, "w:0") + text(3, "Const:0"), 2)));
  std::vector<std::string> names;
  for (auto [tensor, end] = reply.equal_range(1); tensor != end; ++tensor) {
    names.push_back(fields(tensor->second).find(1)->second);
  }
  EXPECT_THAT(names, testing::UnorderedElementsAre("w:0", "Const:0"));
}

TEST(MasterService, ReturnsStepErrorsInTheBodyOfAnOkReply) {
  InProcessCluster cluster({{"ps", 1}, {"worker", 1}});
  RawClient client(cluster);
  const std::string session = client.create(counter());
  const auto reply = fields(client.answer("RunStep", run_step(session, text(4, "add"), 1)));
  EXPECT_EQ(reply.find(3)->second, std::to_string(static_cast<int>(Code::failed_precondition)));
  EXPECT_THAT(reply.find(4)->second, HasSubstr("Attempting to use uninitialized value w"));
  ASSERT_EQ(reply.count(1000), 1u);  // the node, for our own clients
  const std::string node = reply.find(1000)->second;
  EXPECT_THAT(reply.find(4)->second, HasSubstr(node_text(node)));
  // Without store_errors_in_response_body the call itself fails.
  const auto [status, body] = client.call("RunStep", text(1, session) + text(4, "add"));
  EXPECT_EQ(status.code, static_cast<int>(Code::failed_precondition));
  EXPECT_THAT(status.message, HasSubstr("uninitialized"));
  EXPECT_EQ(node_of(status), node);
}

// y = w + x, w on the ps.
Graph partial() {
  Graph graph;
  const DeviceScope on(graph, "/job:ps/task:0");
  const Output x = placeholder(graph, "x", f32, {});
  graph.add({.op = "Identity", .name = "first", .inputs = {constant(graph, Tensor::scalar(2.0f))}});
  graph.add({.op = "AddV2", .name = "y", .inputs = {graph.find("first")->output(), x}});
  return graph;
}

std::string fed(const std::string& name, const Tensor& value) {
  return text(2, text(1, name) + text(2, to_tensor_proto(value)));
}

TEST(MasterService, PartialRunIsOneStepInSeveralCalls) {
  InProcessCluster cluster({{"ps", 1}, {"worker", 1}});
  RawClient client(cluster);
  const std::string session = client.create(partial());
  const std::string setup =
      text(1, session) + text(2, "x:0") + text(3, "first:0") + text(3, "y:0") + number(5, 1);
  const std::string first_answer = client.answer("PartialRunSetup", setup);
  EXPECT_EQ(client.answer("PartialRunSetup", setup), first_answer) << "a repeated request";
  const std::string run = text(6, fields(first_answer).find(1)->second);
  EXPECT_EQ(fetched(client.answer("RunStep", run_step(session, run + text(3, "first:0"), 2))), 2);
  EXPECT_EQ(cluster.task("worker").master().running_steps(), 1u);
  const std::string last =
      run_step(session, run + text(3, "y:0") + fed("x:0", Tensor::scalar(5.0f)), 3);
  EXPECT_EQ(fetched(client.answer("RunStep", last)), 7);
  EXPECT_EQ(fetched(client.answer("RunStep", last)), 7) << "a repeated request";
  // A step ends when its client has received the answer.
  EXPECT_TRUE(eventually([&] { return cluster.task("worker").master().running_steps() == 0; }));
  const auto late =
      fields(client.answer("RunStep", run_step(session, run + text(3, "first:0"), 4)));
  EXPECT_THAT(late.find(4)->second, HasSubstr("Must run PartialRunSetup before"));
}

TEST(MasterService, PartialRunReportsALostTaskInTheNextCall) {
  InProcessCluster cluster({{"ps", 1}, {"worker", 1}});
  RawClient client(cluster);
  const std::string session = client.create(partial());
  const std::string setup = text(1, session) + text(2, "x:0") + text(3, "first:0") + text(3, "y:0");
  const std::string run = text(6, fields(client.answer("PartialRunSetup", setup)).find(1)->second);
  client.answer("RunStep", run_step(session, run + text(3, "first:0"), 1));
  cluster.kill("ps");
  const auto reply = fields(client.answer(
      "RunStep", run_step(session, run + text(3, "y:0") + fed("x:0", Tensor::scalar(5.0f)), 2)));
  EXPECT_EQ(reply.find(3)->second, std::to_string(static_cast<int>(Code::unavailable)));
  EXPECT_THAT(reply.find(4)->second, HasSubstr("/job:ps/task:0"));
}

TEST(MasterService, PartialRunEndsIfItsClientDoesNotCallAgain) {
  InProcessCluster cluster({{"ps", 1}, {"worker", 1}});
  RawClient client(cluster);
  const std::string operation_timeout = number(11, 2'000);
  const std::string session = client.create(partial(), operation_timeout);
  const std::string setup = text(1, session) + text(2, "x:0") + text(3, "first:0") + text(3, "y:0");
  const std::string run = text(6, fields(client.answer("PartialRunSetup", setup)).find(1)->second);
  EXPECT_EQ(fetched(client.answer("RunStep", run_step(session, run + text(3, "first:0"), 1))), 2);
  const Master& master = cluster.task("worker").master();
  EXPECT_EQ(master.running_steps(), 1u);
  EXPECT_TRUE(eventually([&] { return master.running_steps() == 0; }));
  const auto reply = fields(client.answer(
      "RunStep", run_step(session, run + text(3, "y:0") + fed("x:0", Tensor::scalar(5.0f)), 2)));
  EXPECT_EQ(reply.find(3)->second, std::to_string(static_cast<int>(Code::deadline_exceeded)));
  EXPECT_THAT(reply.find(4)->second, HasSubstr("was not continued for 2.0 s"));
}

TEST(MasterService, ReportsSessionErrorsAsTensorFlowDoes) {
  InProcessCluster cluster({{"ps", 1}, {"worker", 1}});
  RawClient client(cluster);
  const auto expect = [&](const std::string& method, const std::string& request, Code code,
                          const char* message) {
    const auto [status, reply] = client.call(method, request);
    EXPECT_EQ(status.code, static_cast<int>(code)) << method << ": " << status.message;
    EXPECT_THAT(status.message, HasSubstr(message)) << method;
  };
  expect("RunStep", text(1, "nobody") + text(4, "x"), Code::aborted,
         "Session nobody is not found.");
  expect("CloseSession", text(1, "nobody"), Code::aborted,
         ("Session nobody is not found. /job:worker/task:0 (" +
          cluster.spec().address({"worker", 0}) + ") does not know it: it may have restarted")
             .c_str());
  expect("ExtendSession", text(1, "nobody"), Code::aborted, "Session nobody is not found.");
  expect("ListDevices", text(1, "nobody"), Code::invalid_argument, "Session nobody is not found.");
  expect("PartialRunSetup", text(1, "nobody") + text(3, "x"), Code::aborted,
         "Session nobody is not found.");
  const std::string session = client.create(counter());
  expect("ExtendSession", text(1, session) + number(3, 7), Code::aborted,
         "Current version is 0 but caller expected 7.");
  expect("ExtendSession", text(1, session) + text(2, to_graph_def(counter())),
         Code::invalid_argument, "w");
  const std::string config = text(2, number(9, 1));  // use_per_session_threads
  expect("CreateSession", config, Code::invalid_argument, "use_per_session_threads");
  expect("CreateSession", text(2, text(4, "/jb:ps")), Code::invalid_argument, "/jb:ps");
  // The session is unchanged.
  client.answer("RunStep", run_step(session, text(4, "init"), 1));
}

TEST(MasterService, ExtendCountsVersionsAndFillsAnEmptySession) {
  InProcessCluster cluster({{"ps", 1}, {"worker", 1}});
  RawClient client(cluster);
  const std::string session = fields(client.answer("CreateSession", "")).find(1)->second;
  const auto devices = fields(client.answer("ListDevices", text(1, session)));
  EXPECT_EQ(devices.count(1), 1u) << "the task's own";
  EXPECT_EQ(devices.count(2), 1u) << "of others";
  const auto reply =
      fields(client.answer("ExtendSession", text(1, session) + text(2, to_graph_def(counter()))));
  EXPECT_EQ(reply.find(4)->second, "1");
  client.answer("RunStep", run_step(session, text(4, "init"), 1));
  EXPECT_EQ(fetched(client.answer("RunStep", run_step(session, text(3, "w:0"), 2))), 0);
}

TEST(MasterService, CallablesTakeFeedsInOrder) {
  InProcessCluster cluster({{"ps", 1}, {"worker", 1}});
  RawClient client(cluster);
  Graph graph;
  const Output a = placeholder(graph, "a", f32, {});
  const Output b = placeholder(graph, "b", f32, {});
  graph.add({.op = "Sub", .name = "difference", .inputs = {a, b}});
  const std::string session = client.create(graph);
  const auto made = fields(client.answer(
      "MakeCallable", text(1, session) +
                          text(2, text(1, "b:0") + text(1, "a:0") + text(2, "difference:0")) +
                          number(3, 9)));
  const uint64_t handle = std::stoull(made.find(1)->second);
  const std::string feeds = text(3, to_tensor_proto(Tensor::scalar(1.0f))) +
                            text(3, to_tensor_proto(Tensor::scalar(10.0f)));
  const auto ran = fields(
      client.answer("RunCallable", text(1, session) + number(2, handle) + feeds + number(4, 10)));
  EXPECT_EQ(from_tensor_proto(ran.find(1)->second).item<float>(), 9);
  client.answer("ReleaseCallable", text(1, session) + number(2, handle));
  const auto [status, reply] =
      client.call("RunCallable", text(1, session) + number(2, handle) + feeds);
  EXPECT_EQ(status.code, static_cast<int>(Code::invalid_argument));
  EXPECT_THAT(status.message, HasSubstr("No such callable handle"));
}

TEST(MasterService, StepEndsWhenItsClientIsGone) {
  InProcessCluster cluster({{"ps", 1}, {"worker", 1}});
  Graph graph;
  {
    const DeviceScope on(graph, "/job:ps/task:0");
    gate(constant(graph, Tensor::scalar(1.0f)), "client");
  }
  const Output y = Operand(graph.output("TestGate")) + 1;
  RawClient client(cluster);
  const std::string session = client.create(graph);
  RpcClient leaving(cluster.task("worker").address());
  const RpcClient::CallId call = leaving.call("/tensorflow.MasterService/RunStep",
                                              to_slices(run_step(session, text(3, y.name()), 5)),
                                              {}, [](const RpcStatus&, const Bytes&) {});
  ASSERT_TRUE(wait_at_gate("client"));
  EXPECT_EQ(cluster.task("worker").master().running_steps(), 1u);
  leaving.cancel(call);
  EXPECT_TRUE(eventually([&] { return cluster.task("worker").master().running_steps() == 0; }));
  open_gate("client");
}

TEST(MasterService, RepeatAfterABrokenConnectionJoinsTheRunningStep) {
  InProcessCluster cluster({{"ps", 1}, {"worker", 1}});
  Graph graph = counter();
  Output slow;
  {
    const DeviceScope on(graph, "/job:ps/task:0");
    slow = gate(constant(graph, Tensor::scalar(1.0f)), "repeat");
    graph.add({.op = "AssignAdd", .name = "slow_add", .inputs = {graph.output("w"), slow}});
  }
  RawClient client(cluster);
  const std::string session = client.create(graph);
  client.answer("RunStep", run_step(session, text(4, "init"), 1));
  const std::string request = run_step(session, text(3, "slow_add:0"), 2);
  {
    RpcClient first(cluster.task("worker").address());
    first.call("/tensorflow.MasterService/RunStep", to_slices(request), {},
               [](const RpcStatus&, const Bytes&) {});
    ASSERT_TRUE(wait_at_gate("repeat"));
  }  // its connection breaks
  auto repeated = std::async(std::launch::async, [&] { return client.answer("RunStep", request); });
  // Without the repeat, the step would be cancelled a second after its client went.
  EXPECT_EQ(repeated.wait_for(std::chrono::milliseconds(1'500)), std::future_status::timeout);
  open_gate("repeat");
  EXPECT_EQ(fetched(repeated.get()), 1);
  EXPECT_EQ(fetched(client.answer("RunStep", run_step(session, text(3, "w:0"), 3))), 1);
}

TEST(MasterService, TruncatesLongMessagesToFitAStatus) {
  InProcessCluster cluster({{"worker", 1}});
  RawClient client(cluster);
  std::string graph;
  for (int i = 0; i < 400; ++i) {
    graph += text(1, text(1, concat("node", i)) + text(2, concat("NoSuchOp", i)));
  }
  const auto [status, reply] = client.call("CreateSession", text(1, graph));
  EXPECT_EQ(status.code, static_cast<int>(Code::not_found));
  EXPECT_THAT(status.message, testing::StartsWith("Op type not registered 'NoSuchOp"));
  EXPECT_EQ(status.message.size(), 3'072u);
}

TEST(MasterService, LostTaskIsAbortedInTheStatusAndUnavailableInTheBody) {
  InProcessCluster cluster({{"ps", 1}, {"worker", 1}});
  RawClient client(cluster);
  const std::string session = client.create(counter());
  cluster.kill("ps");
  const auto [status, reply] = client.call("RunStep", text(1, session) + text(4, "init"));
  EXPECT_EQ(status.code, static_cast<int>(Code::aborted));
  const auto body = fields(client.answer("RunStep", run_step(session, text(4, "init"), 3)));
  EXPECT_EQ(body.find(3)->second, std::to_string(static_cast<int>(Code::unavailable)));
}

}  // namespace
}  // namespace leat
