// What a bad network, and connections that end in the middle, do to steps: real tasks in this
// process, with a relay between them that stalls, resets, corrupts, delays or loses. Every error
// must come in time, name the task and its address, and leave a working cluster.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <future>
#include <thread>

#include "distributed/cluster/membership.h"
#include "distributed/cluster_session.h"
#include "distributed/cluster_view.h"
#include "distributed/master/master.h"
#include "distributed/worker/worker.h"
#include "graph/ops.h"
#include "tests/support/counter_graph.h"
#include "tests/support/eventually.h"
#include "tests/support/expect_error.h"
#include "tests/support/gate.h"
#include "tests/support/in_process_cluster.h"
#include "tests/support/tcp_proxy.h"

namespace leat {
namespace {

using Clock = std::chrono::steady_clock;
using std::chrono::milliseconds;
using std::chrono::seconds;
using testing::AllOf;
using testing::AnyOf;
using testing::HasSubstr;

constexpr const char* ps = "/job:ps/task:0";

// A machine under test load is slower than a serving one; the limits catch hangs, not slowness.
constexpr auto soon = seconds(10);
constexpr auto frozen_limit = seconds(30);

// w on the ps; "init" sets it to 0, "add" adds 1, "y" is w + x on worker 0; x is fed.
struct Model {
  Graph graph;
  Model() {
    Output w;
    {
      const DeviceScope on(graph, ps);
      w = add_counter(graph);
    }
    const DeviceScope on(graph, "/job:worker/task:0");
    graph.add({.op = "AddV2", .name = "y", .inputs = {w, placeholder(graph, "x", f32, {any})}});
  }
};

enum class Way { network, shared_memory };

// One ps, two workers; worker 0 reaches the ps through a relay, worker 1 directly. The tensors
// and steps between worker 0 and the ps take the way that the parameter says: with shared memory
// the relay has only the greeting, and what the master asks the ps beside steps. With `hold`, a
// gate in the graph "held" holds what the ps sends.
class Fault : public testing::TestWithParam<Way> {
 protected:
  Fault() {
    cluster_ = std::make_unique<InProcessCluster>(
        std::map<std::string, int>{{"ps", 1}, {"worker", 2}}, InProcessCluster::default_options(),
        [this](const TaskName& viewer, const ClusterSpec& cluster) {
          ClusterSpec view = cluster;
          if (viewer != TaskName{"worker", 0}) return view;
          if (proxy_ == nullptr) proxy_ = std::make_unique<TcpProxy>(cluster.address({"ps", 0}));
          view.set_address({"ps", 0}, proxy_->address());
          view.set_shares_memory(GetParam() == Way::shared_memory);
          return view;
        });
    session_ = cluster_->session(model_.graph);
    run("init");
  }

  void run(const std::string& target) { session_->run({}, {}, {target}); }
  float step() {
    return session_->run({{"x:0", Tensor::of<float>({1}, {0})}}, {"y:0"}, {})[0].data<float>()[0];
  }
  // A step that fails; `took` is its duration.
  Status failing_step(Clock::duration* took = nullptr) {
    const auto begin = Clock::now();
    const Status status = error_of([&] { step(); });
    if (took != nullptr) *took = Clock::now() - begin;
    return status;
  }
  void expect_names_the_ps(const Status& status) const {
    EXPECT_THAT(std::string(code_name(status.code)), AnyOf("UNAVAILABLE", "ABORTED"));
    EXPECT_THAT(status.message, HasSubstr("/job:ps/task:0 (" + proxy_->address() + ")"));
  }
  void expect_works_again() {
    Status status;
    EXPECT_TRUE(eventually([&] {
      status = failing_step();
      return status.is_ok();
    })) << status.message;
  }

  std::unique_ptr<TcpProxy> proxy_;
  std::unique_ptr<InProcessCluster> cluster_;
  Model model_;
  std::unique_ptr<SessionInterface> session_;
};

std::string way_name(const testing::TestParamInfo<Way>& info) {
  return info.param == Way::network ? "Network" : "SharedMemory";
}
INSTANTIATE_TEST_SUITE_P(, Fault, testing::Values(Way::network, Way::shared_memory), way_name);

TEST_P(Fault, DelayChangesNothing) {
  proxy_->delay(milliseconds(50));
  run("add");
  EXPECT_EQ(step(), 1);
}

// Steps that go through memory do not hear of these until the connection is given up.
class FaultOfTheNetwork : public Fault {};
INSTANTIATE_TEST_SUITE_P(, FaultOfTheNetwork, testing::Values(Way::network), way_name);

TEST_P(FaultOfTheNetwork, HalfOpenConnectionReportsTheSilentTaskAndWhatItOwed) {
  EXPECT_EQ(step(), 0);
  proxy_->stall();
  Clock::duration took{};
  const Status status = failing_step(&took);
  expect_names_the_ps(status);
  EXPECT_THAT(status.message, AllOf(HasSubstr("last heard"), HasSubstr("owed")));
  EXPECT_LT(took, frozen_limit);
  // The other pair is not affected.
  const auto other = cluster_->session(model_.graph, "worker", 1);
  other->run({}, {}, {"add"});
  proxy_->stall(false);
  expect_works_again();
  EXPECT_EQ(step(), 1);
}

TEST_P(FaultOfTheNetwork, StallInOneDirectionEndsTheStep) {
  EXPECT_EQ(step(), 0);
  proxy_->stall_replies();
  expect_names_the_ps(failing_step());
  proxy_->stall_replies(false);
  expect_works_again();
}

class FaultBesideTheMemory : public Fault {};
INSTANTIATE_TEST_SUITE_P(, FaultBesideTheMemory, testing::Values(Way::shared_memory), way_name);

TEST_P(FaultBesideTheMemory, StallDoesNotDelaySteps) {
  run("add");
  EXPECT_EQ(step(), 1);
  proxy_->stall();
  run("add");
  EXPECT_EQ(step(), 2);
  proxy_->stall(false);
}

// "big" on the ps, with as many floats as the feed says.
class FaultOfALargeReply : public Fault {
 protected:
  FaultOfALargeReply() {
    const DeviceScope on(model_.graph, ps);
    model_.graph.add({.op = "Fill",
                      .name = "big",
                      .inputs = {placeholder(model_.graph, "extent", i32, {1}),
                                 constant(model_.graph, Tensor::scalar(1.0f))}});
    session_->extend(model_.graph);
    fetch(1);  // everything is registered and connected
  }
  void fetch(int32_t floats, RunOptions options = {}) {
    session_->run({{"extent:0", Tensor::of<int32_t>({1}, {floats})}}, {"big:0"}, {}, options);
  }
};

INSTANTIATE_TEST_SUITE_P(, FaultOfALargeReply, testing::Values(Way::network), way_name);

TEST_P(FaultOfALargeReply, IsNamedIfTheDeadlineComesFirst) {
  proxy_->limit(20'000'000);
  const Status status = error_of([&] { fetch(25'000'000, {.timeout = seconds(2)}); });
  proxy_->limit(0);
  EXPECT_EQ(code_name(status.code), code_name(Code::deadline_exceeded));
  EXPECT_THAT(status.message,
              HasSubstr(concat("/job:ps/task:0 (", proxy_->address(),
                               ") has done its part; its reply of 100.0 MB is on the way, for ")));
  expect_works_again();
}

TEST_P(FaultOfALargeReply, IsShownWhileInTransit) {
  Worker& worker = cluster_->task("ps").worker();
  proxy_->stall_replies();
  auto outcome =
      std::async(std::launch::async, [&] { return error_of([&] { fetch(25'000'000); }); });
  constexpr const char* text = "has done its part; its reply of 100.0 MB is on the way";
  const auto view = [&] { return to_text(view_cluster(cluster_->target("worker", 1))); };
  EXPECT_TRUE(eventually([&] { return view().find(text) != std::string::npos; })) << view();
  const std::vector<RunningStep> steps = worker.current_activity().steps;
  ASSERT_EQ(steps.size(), 1u);
  EXPECT_EQ(steps[0].master, (TaskName{"worker", 0}));
  proxy_->stall_replies(false);
  const Status status = outcome.get();
  EXPECT_TRUE(status.is_ok()) << status.message;
  EXPECT_TRUE(eventually([&] { return worker.current_activity().steps.empty(); }));
  const std::vector<StepActivity> late =
      worker.abort(steps[0].step, {Code::cancelled, "too late", true});
  ASSERT_EQ(late.size(), 1u);
  EXPECT_EQ(late[0].what, "has done its part; its reply of 100.0 MB has left");
}

TEST_P(Fault, ResetEndsTheStepAtOnce) {
  Graph& graph = model_.graph;
  Output held;
  {
    const DeviceScope on(graph, ps);
    held = gate(constant(graph, Tensor::of<float>({2}, {1, 2})), "reset");
  }
  {
    const DeviceScope on(graph, "/job:worker/task:0");
    graph.add({.op = "Identity", .name = "late", .inputs = {held + 1}});
  }
  session_->extend(graph);
  auto outcome = std::async(std::launch::async,
                            [&] { return error_of([&] { session_->run({}, {"late:0"}, {}); }); });
  ASSERT_TRUE(wait_at_gate("reset"));
  const auto begin = Clock::now();
  proxy_->reset();
  ASSERT_EQ(outcome.wait_for(soon), std::future_status::ready);
  EXPECT_LT(Clock::now() - begin, soon);
  const Status status = outcome.get();
  expect_names_the_ps(status);
  EXPECT_THAT(status.message, HasSubstr("TestGate"));
  open_gate("reset");
  expect_works_again();
}

TEST_P(Fault, CutLinkAffectsOnlyItsPair) {
  proxy_->refuse();
  proxy_->reset();
  const Status status = failing_step();
  expect_names_the_ps(status);
  const auto other = cluster_->session(model_.graph, "worker", 1);
  for (int i = 0; i < 3; ++i) other->run({}, {}, {"add"});
  EXPECT_EQ(other->run({}, {"w:0"}, {})[0].item<float>(), 3);
  proxy_->refuse(false);
  expect_works_again();
  EXPECT_EQ(step(), 3);
}

// A step with targets alone fetches nothing and sends nothing; its task still owes it.
TEST_P(Fault, LostTaskOwesItsTargets) {
  Graph& graph = model_.graph;
  {
    const DeviceScope on(graph, ps);
    const Output held = gate(constant(graph, Tensor::of<float>({2}, {1, 2})), "target");
    graph.add({.op = "NoOp", .name = "train", .control_inputs = {held.node}});
  }
  session_->extend(graph);
  auto outcome = std::async(std::launch::async, [&] { return error_of([&] { run("train"); }); });
  ASSERT_TRUE(wait_at_gate("target"));
  proxy_->reset();
  ASSERT_EQ(outcome.wait_for(soon), std::future_status::ready);
  const Status status = outcome.get();
  expect_names_the_ps(status);
  EXPECT_THAT(status.message, HasSubstr("; it owed its part of the step: train"));
  open_gate("target");
}

// Attempts to reach the task again do not count as hearing from it.
TEST_P(Fault, TimeSinceALostTaskWasHeardKeepsGrowing) {
  proxy_->refuse();
  proxy_->reset();
  const Membership& membership = cluster_->task("worker").membership();
  ASSERT_TRUE(eventually([&] { return !membership.is_connected({"ps", 0}); }));
  const auto begin = Clock::now();
  std::this_thread::sleep_for(milliseconds(2'500));
  const auto passed = std::chrono::duration_cast<milliseconds>(Clock::now() - begin);
  EXPECT_GE(membership.peer({"ps", 0}).last_heard + milliseconds(1), passed);
  proxy_->refuse(false);
}

TEST_P(Fault, FlappingLosesNoAcknowledgedUpdate) {
  int acknowledged = 0, failed = 0;
  for (int i = 0; i < 60; ++i) {
    if (i % 6 == 3) proxy_->reset();
    const Status status = error_of([&] { run("add"); });
    (status.is_ok() ? acknowledged : failed) += 1;
    if (!status.is_ok()) expect_names_the_ps(status);
  }
  expect_works_again();
  const float w = step();
  EXPECT_GE(w, acknowledged);
  EXPECT_LE(w, acknowledged + failed);  // a failed update may or may not have happened
  EXPECT_GT(acknowledged, 0);
}

TEST_P(Fault, CorruptionIsDetectedAndAffectsNobodyElse) {
  const auto other = cluster_->session(model_.graph, "worker", 1);
  for (int i = 0; i < 20; ++i) {
    proxy_->corrupt(1);
    const Status status = failing_step();
    if (!status.is_ok()) {
      EXPECT_THAT(status.message, HasSubstr("/job:")) << code_name(status.code);
    }
    other->run({}, {}, {"add"});
  }
  proxy_->corrupt(0);
  proxy_->reset();
  expect_works_again();
  EXPECT_EQ(other->run({}, {"w:0"}, {})[0].item<float>(), 20);
}

// On the ps; "fill" assigns the fed "value", "there" is its negative on worker 0.
void add_large_variable(Graph& graph, int64_t count) {
  Output big;
  {
    const DeviceScope on(graph, ps);
    big = graph
              .add({.op = "VariableV2",
                    .name = "big",
                    .attrs = {{"shape", Shape{count}}, {"dtype", f32}}})
              .output();
    graph.add(
        {.op = "Assign", .name = "fill", .inputs = {big, placeholder(graph, "value", f32, {any})}});
  }
  const DeviceScope on(graph, "/job:worker/task:0");
  graph.add({.op = "Neg", .name = "there", .inputs = {big}});
}

// Each step sends 8 MB from the ps to worker 0, and one bit of them changes on the way: the client
// gets the right value, or none.
// Over the network only: the relay has no payload in shared memory.
// ChannelOver.NeverDeliversDamagedPieces damages both.
class FaultOfAPayload : public Fault {};
INSTANTIATE_TEST_SUITE_P(, FaultOfAPayload, testing::Values(Way::network), way_name);

TEST_P(FaultOfAPayload, DamageIsNeverDelivered) {
  constexpr int64_t count = 2 << 20;
  Tensor ramp(f32, {count});
  for (int64_t i = 0; i < count; ++i) ramp.data<float>()[i] = static_cast<float>(i);
  Graph& graph = model_.graph;
  add_large_variable(graph, count);
  session_->extend(graph);
  session_->run({{"value:0", ramp}}, {}, {"fill"});
  Tensor value;
  const auto fetch = [&] {
    return error_of([&] { value = session_->run({}, {"there:0"}, {})[0]; });
  };
  ASSERT_TRUE(fetch().is_ok());
  int noticed = 0;
  for (int i = 0; i < 12; ++i) {
    proxy_->corrupt_large_replies(1);
    const Status status = fetch();
    if (status.is_ok()) {
      ASSERT_EQ(value.elements(), count);
      for (int64_t at = 0; at < count; ++at)
        ASSERT_EQ(value.data<float>()[at], -ramp.data<float>()[at]);
    } else {
      EXPECT_THAT(std::string(code_name(status.code)), AnyOf("UNAVAILABLE", "ABORTED"));
      EXPECT_THAT(status.message, HasSubstr("/job:ps/task:0"));
      const bool is_checksum = status.message.find("checksum of edge_") != std::string::npos;
      if (is_checksum) {
        EXPECT_EQ(code_name(status.code), code_name(Code::unavailable));
        EXPECT_THAT(status.message, AllOf(HasSubstr("(of node big"),
                                          HasSubstr("from /job:ps/task:0 to /job:worker/task:0")));
      }
      noticed += is_checksum ? 1 : 0;
      EXPECT_TRUE(eventually([&] { return fetch().is_ok(); }));
    }
  }
  EXPECT_GT(noticed, 6);
  proxy_->corrupt_large_replies(0);
}

// Pieces that take longer than the accepted silence are not silence: their bytes arrive.
TEST(SlowLink, IsSlowButNotLost) {
  std::unique_ptr<TcpProxy> proxy;
  TaskOptions options = InProcessCluster::default_options();
  options.silence = milliseconds(4'000);
  InProcessCluster cluster({{"ps", 1}, {"worker", 1}}, options,
                           [&](const TaskName& viewer, const ClusterSpec& spec) {
                             ClusterSpec view = spec;
                             if (viewer != TaskName{"worker", 0}) return view;
                             proxy = std::make_unique<TcpProxy>(spec.address({"ps", 0}));
                             view.set_address({"ps", 0}, proxy->address());
                             view.set_shares_memory(false);
                             return view;
                           });
  constexpr int64_t count = 3 << 18;  // 3 MB
  Graph graph;
  add_large_variable(graph, count);
  const auto session = cluster.session(graph);
  session->run({{"value:0", Tensor(f32, {count})}}, {}, {"fill"});
  proxy->limit(200'000);
  const Status status = error_of([&] { session->run({}, {}, {"there"}); });
  EXPECT_TRUE(status.is_ok()) << status.message;
  proxy->limit(0);
}

// A client that dials its master through a relay. Its steps take the way that the parameter says.
class ClientFault : public testing::TestWithParam<Way> {
 protected:
  ClientFault() : proxy_(cluster_.task("worker").address()) {
    SessionOptions options;
    options.target = "grpc://" + proxy_.address();
    options.timeout = seconds(60);
    session_ = make_grpc_session(options);
    session_->extend(model_.graph);
    session_->run({}, {}, {"init"});
  }
  float counter() { return cluster_.session(model_.graph)->run({}, {"w:0"}, {})[0].item<float>(); }

  InProcessCluster cluster_{{{"ps", 1}, {"worker", 1}},
                            InProcessCluster::default_options(),
                            [](const TaskName&, const ClusterSpec& cluster) {
                              ClusterSpec view = cluster;
                              view.set_shares_memory(GetParam() == Way::shared_memory);
                              return view;
                            }};
  Model model_;
  TcpProxy proxy_;
  std::unique_ptr<SessionInterface> session_;
};
INSTANTIATE_TEST_SUITE_P(, ClientFault, testing::Values(Way::network, Way::shared_memory),
                         way_name);

TEST_P(ClientFault, StepOutlivesALostConnection) {
  Graph& graph = model_.graph;
  {
    const DeviceScope on(graph, ps);
    const Output held = gate(constant(graph, Tensor::of<float>({2}, {1, 2})), "outlives");
    const ControlScope after(graph, {held.node});
    graph.add({.op = "AssignAdd",
               .name = "add_late",
               .inputs = {graph.output("w"), constant(graph, Tensor::scalar(1.0f))}});
  }
  session_->extend(graph);
  for (int i = 0; i < 20; ++i) session_->run({}, {}, {"add"});  // the client's channel is there
  auto outcome = std::async(std::launch::async,
                            [&] { return error_of([&] { session_->run({}, {}, {"add_late"}); }); });
  ASSERT_TRUE(wait_at_gate("outlives"));
  proxy_.reset();
  open_gate("outlives");
  ASSERT_EQ(outcome.wait_for(soon), std::future_status::ready);
  const Status status = outcome.get();
  EXPECT_TRUE(status.is_ok()) << status.message;
  EXPECT_EQ(counter(), 21) << "the repeated request joins the step";
}

TEST_P(ClientFault, ResetsLoseNoUpdateAndRepeatNone) {
  std::atomic<bool> is_over{false};
  const auto resets = std::async(std::launch::async, [&] {
    for (int i = 0; i < 5; ++i) {
      // The client opens its channel again after a second: resets meet steps with it and without.
      std::this_thread::sleep_for(milliseconds(700));
      proxy_.reset();
    }
    is_over = true;
  });
  int64_t steps = 0;
  for (; !is_over || steps < 10; ++steps) session_->run({}, {}, {"add"});
  EXPECT_EQ(counter(), static_cast<float>(steps));
}

// What goes through memory is not silent when the network is, until the ends notice that.
class ClientFaultOfTheNetwork : public ClientFault {};
INSTANTIATE_TEST_SUITE_P(, ClientFaultOfTheNetwork, testing::Values(Way::network), way_name);

TEST_P(ClientFaultOfTheNetwork, LostReplyIsRepeatedWithoutASecondUpdate) {
  for (int i = 1; i <= 5; ++i) {
    proxy_.stall_replies();
    auto outcome = std::async(std::launch::async,
                              [&] { return error_of([&] { session_->run({}, {}, {"add"}); }); });
    ASSERT_TRUE(eventually([&] { return counter() == static_cast<float>(i); }));
    proxy_.reset();  // the update is done, its answer is lost
    proxy_.stall_replies(false);
    ASSERT_EQ(outcome.wait_for(soon), std::future_status::ready);
    EXPECT_TRUE(outcome.get().is_ok());
    EXPECT_EQ(counter(), static_cast<float>(i));
  }
}

TEST_P(ClientFaultOfTheNetwork, SilentMasterIsNamed) {
  proxy_.stall();
  const Status status = error_of([&] { session_->run({}, {}, {"add"}); });
  EXPECT_EQ(code_name(status.code), code_name(Code::unavailable));
  EXPECT_THAT(status.message, AllOf(HasSubstr("/job:worker/task:0"), HasSubstr(proxy_.address())));
  proxy_.stall(false);
}

TEST_P(ClientFault, VanishedClientEndsItsSteps) {
  Graph& graph = model_.graph;
  {
    const DeviceScope on(graph, ps);
    gate(constant(graph, Tensor::of<float>({2}, {1, 2})), "vanished");
  }
  session_->extend(graph);
  auto outcome = std::async(
      std::launch::async, [&] { return error_of([&] { session_->run({}, {"TestGate:0"}, {}); }); });
  ASSERT_TRUE(wait_at_gate("vanished"));
  proxy_.refuse();
  proxy_.reset();
  EXPECT_TRUE(eventually([&] { return cluster_.task("worker").master().running_steps() == 0; }));
  EXPECT_FALSE(outcome.get().is_ok());
  open_gate("vanished");
  EXPECT_TRUE(
      eventually([&] { return cluster_.task("ps").worker().current_status().running_steps == 0; }));
}

// It never closes its session: the task frees the session's programs anyway.
TEST_P(ClientFault, VanishedClientsProgramsAreDropped) {
  Graph& graph = model_.graph;
  {
    const DeviceScope on(graph, ps);
    gate(constant(graph, Tensor::of<float>({2}, {1, 2})), "deserted");
  }
  session_->extend(graph);
  auto outcome = std::async(
      std::launch::async, [&] { return error_of([&] { session_->run({}, {"TestGate:0"}, {}); }); });
  ASSERT_TRUE(wait_at_gate("deserted"));
  proxy_.refuse();
  proxy_.reset();
  EXPECT_FALSE(outcome.get().is_ok());
  open_gate("deserted");
  EXPECT_TRUE(eventually([&] { return cluster_.task("ps").worker().current_status().graphs == 0; },
                         std::chrono::seconds(20)))
      << "and sooner than those of a client that is silent";
  EXPECT_EQ(cluster_.task("worker").master().sessions(), 1u) << "the client may come again";
}

TEST(ManySteps, HundredBlockedStepsEndWithTheSession) {
  InProcessCluster cluster({{"ps", 1}, {"worker", 1}});
  Graph graph;
  Output held;
  {
    const DeviceScope on(graph, ps);
    held = gate(constant(graph, Tensor::of<float>({2}, {1, 2})), "hundred");
  }
  {
    const DeviceScope on(graph, "/job:worker/task:0");
    graph.add({.op = "Identity", .name = "y", .inputs = {held + 1}});
  }
  const auto session = cluster.session(graph);
  constexpr int steps = 100;
  std::vector<std::future<Status>> outcomes;
  for (int i = 0; i < steps; ++i) {
    outcomes.push_back(std::async(
        std::launch::async, [&] { return error_of([&] { session->run({}, {"y:0"}, {}); }); }));
  }
  ASSERT_TRUE(eventually([&] {
    return cluster.task("ps").worker().current_status().running_steps == steps &&
           cluster.task("worker").worker().current_status().running_steps == steps;
  }));
  const auto begin = Clock::now();
  session->close();
  EXPECT_LT(Clock::now() - begin, seconds(30));
  for (auto& outcome : outcomes) {
    ASSERT_EQ(outcome.wait_for(soon), std::future_status::ready);
    EXPECT_EQ(code_name(outcome.get().code), code_name(Code::cancelled));
  }
  EXPECT_EQ(cluster.task("worker").master().sessions(), 0u);
  EXPECT_TRUE(eventually(
      [&] { return cluster.task("worker").worker().current_status().running_steps == 0; }));
  open_gate("hundred");
  EXPECT_TRUE(eventually([&] {
    const WorkerStatus status = cluster.task("ps").worker().current_status();
    return status.running_steps == 0 && status.graphs == 0;
  }));
}

TEST(Shutdown, GivesRunningStepsAGracePeriodAndRejectsNewOnes) {
  InProcessCluster cluster({{"ps", 1}, {"worker", 1}});
  Graph graph;
  Output held;
  {
    const DeviceScope on(graph, ps);
    held = gate(constant(graph, Tensor::of<float>({2}, {1, 2})), "drained");
  }
  {
    const DeviceScope on(graph, "/job:worker/task:0");
    graph.add({.op = "Identity", .name = "y", .inputs = {held + 1}});
  }
  const auto session = cluster.session(graph);
  auto step = std::async(std::launch::async, [&] { return session->run({}, {"y:0"}, {})[0]; });
  ASSERT_TRUE(wait_at_gate("drained"));
  auto shutdown = std::async(std::launch::async, [&] { cluster.task("ps").shutdown(seconds(60)); });
  EXPECT_TRUE(eventually([&] {
    const Status status =
        error_of([&] { session->run({}, {"y:0"}, {}, {.timeout = milliseconds(300)}); });
    return status.message.find("shutting down") != std::string::npos;
  }));
  open_gate("drained");
  EXPECT_EQ(step.get().to_string(), "float[2] [2, 3]");
  EXPECT_EQ(shutdown.wait_for(seconds(30)), std::future_status::ready);
}

// A step without a part on its master's task: it waits on the ps.
class ShutdownOfAMaster : public testing::Test {
 protected:
  ShutdownOfAMaster() {
    const DeviceScope on(graph_, ps);
    gate(constant(graph_, Tensor::of<float>({2}, {1, 2})), "driven");
    session_ = cluster_.session(graph_);
  }
  void begin_step() {
    step_ = std::async(std::launch::async, [this] {
      return error_of([this] { value_ = session_->run({}, {"TestGate:0"}, {})[0]; });
    });
    ASSERT_TRUE(wait_at_gate("driven"));
  }
  void shut_down(milliseconds grace) {
    shutdown_ =
        std::async(std::launch::async, [this, grace] { cluster_.task("worker").shutdown(grace); });
  }

  InProcessCluster cluster_{{{"ps", 1}, {"worker", 1}}};
  const std::string name_ = "/job:worker/task:0 (" + cluster_.task("worker").address() + ")";
  Graph graph_;
  std::unique_ptr<SessionInterface> session_;
  Tensor value_;
  std::future<Status> step_;
  std::future<void> shutdown_;
};

TEST_F(ShutdownOfAMaster, GivesOtherTasksStepsAGracePeriodAndRejectsNewOnes) {
  begin_step();
  shut_down(seconds(60));
  Status refused;
  EXPECT_TRUE(eventually(
      [&] {
        refused = error_of(
            [&] { session_->run({}, {"TestGate:0"}, {}, {.timeout = milliseconds(300)}); });
        return refused.message.find("is shutting down") != std::string::npos;
      },
      seconds(20)));
  EXPECT_EQ(code_name(refused.code), code_name(Code::unavailable));
  EXPECT_THAT(refused.message, HasSubstr(name_ + " is shutting down"));
  EXPECT_EQ(step_.wait_for(milliseconds(0)), std::future_status::timeout);
  open_gate("driven");
  const Status status = step_.get();
  ASSERT_TRUE(status.is_ok()) << status.message;
  EXPECT_EQ(value_.to_string(), "float[2] [1, 2]");
  EXPECT_EQ(shutdown_.wait_for(seconds(30)), std::future_status::ready);
}

TEST_F(ShutdownOfAMaster, NamesItselfToStepsThatOutliveTheGracePeriod) {
  begin_step();
  shut_down(milliseconds(300));
  ASSERT_EQ(step_.wait_for(seconds(30)), std::future_status::ready);
  const Status status = step_.get();
  EXPECT_EQ(code_name(status.code), code_name(Code::unavailable));
  EXPECT_THAT(status.message, HasSubstr(name_ + " is shutting down"));
  open_gate("driven");
}

TEST_F(ShutdownOfAMaster, DiffersFromReset) {
  begin_step();
  std::promise<void> done;
  cluster_.task("worker").master().reset({}, {}, [&](const Status&) { done.set_value(); });
  const Status status = step_.get();
  EXPECT_EQ(code_name(status.code), code_name(Code::cancelled));
  EXPECT_THAT(status.message, HasSubstr("Reset"));
  open_gate("driven");
  done.get_future().wait();
}

}  // namespace
}  // namespace leat
