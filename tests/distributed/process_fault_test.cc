// Real processes, killed or frozen: each role, while idle and in the middle of a step. The error
// must come in time and name the task, its address and what it owed. Afterwards the cluster works,
// with the variables that it still has. The processes are this test program again (for TestGate,
// which holds a step).
#include <arpa/inet.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <signal.h>
#include <sys/socket.h>
#include <unistd.h>

#include <future>
#include <iostream>

#include "distributed/cluster/membership.h"
#include "distributed/cluster_view.h"
#include "distributed/master/remote_master.h"
#include "distributed/session_factory.h"
#include "distributed/task.h"
#include "graph/ops.h"
#include "tests/support/child_process.h"
#include "tests/support/counter_graph.h"
#include "tests/support/eventually.h"
#include "tests/support/expect_error.h"
#include "tests/support/gate.h"

namespace leat {
namespace {

using Clock = std::chrono::steady_clock;
using std::chrono::milliseconds;
using std::chrono::seconds;
using testing::AllOf;
using testing::AnyOf;
using testing::HasSubstr;

const TaskName ps{"ps", 0}, master{"worker", 0}, worker{"worker", 1};

// Limits for hangs, not for speed: the machine runs other tests too.
constexpr auto killed_limit = seconds(10), frozen_limit = seconds(30);

// Ports that were free a moment ago, all different: the others must know them before the processes
// that bind them run.
std::vector<std::string> free_addresses(size_t count) {
  std::vector<int> sockets;
  std::vector<std::string> out;
  while (out.size() < count) {
    sockets.push_back(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t length = sizeof address;
    EXPECT_EQ(bind(sockets.back(), reinterpret_cast<sockaddr*>(&address), length), 0);
    EXPECT_EQ(getsockname(sockets.back(), reinterpret_cast<sockaddr*>(&address), &length), 0);
    out.push_back("127.0.0.1:" + std::to_string(ntohs(address.sin_port)));
  }
  for (const int fd : sockets) close(fd);
  return out;
}

// w on the ps with "init" and "add"; y = w + 1 goes from the ps through worker 1 to the master; so
// does "late", which waits at a gate on the ps that nobody opens.
Graph model() {
  Graph graph;
  Output w, late;
  {
    const DeviceScope on(graph, ps.to_string());
    w = add_counter(graph);
    late = gate(w + 0.5f, "late");
  }
  Output middle, middle_late;
  {
    const DeviceScope on(graph, worker.to_string());
    middle = w + 1;
    middle_late = late + 1;
  }
  const DeviceScope on(graph, master.to_string());
  graph.add(
      {.op = "AddV2", .name = "y", .inputs = {middle, constant(graph, Tensor::scalar(0.0f))}});
  graph.add({.op = "AddV2", .name = "z", .inputs = {middle_late, middle}});
  return graph;
}

// ---- What the children run ----

void stay_with_the_parent() {
  const pid_t parent = getppid();
  eventually([&] { return getppid() != parent; }, seconds(600));
}

TEST(ProcessFaultChild, DISABLED_Task) {
  const ClusterSpec spec = ClusterSpec::parse(std::getenv("LEAT_TEST_SPEC"));
  Task task(spec, TaskName::parse(std::getenv("LEAT_TEST_TASK")), {.threads = 2});
  task.start(spec);
  task.wait_for_peers();
  std::cout << "task ready" << std::endl;
  stay_with_the_parent();
}

TEST(ProcessFaultChild, DISABLED_Client) {
  const Graph graph = model();
  SessionOptions options;
  options.target = std::getenv("LEAT_TEST_TARGET");
  const auto session = new_session(options);
  session->extend(graph);
  std::cout << "client ready" << std::endl;
  session->run({}, {"z:0"}, {});
}

std::unique_ptr<ChildProcess> start_child(const std::string& test,
                                          const ChildProcess::Environment& environment) {
  return std::make_unique<ChildProcess>(
      std::vector<std::string>{"/proc/self/exe", "--gtest_also_run_disabled_tests",
                               "--gtest_filter=ProcessFaultChild.DISABLED_" + test},
      environment);
}

// ---- The cluster ----

class ProcessCluster {
 public:
  ProcessCluster() {
    const std::vector<std::string> addresses = free_addresses(3);
    size_t next = 0;
    for (const TaskName& task : {ps, master, worker}) spec_.add(task, addresses[next++]);
    spec_.set_id("process-fault-" + std::to_string(getpid()));
    for (const TaskName& task : spec_.tasks()) start(task);
    for (const auto& [task, child] : children_) child->wait_for("task ready");
  }
  // A frozen process cannot end otherwise.
  ~ProcessCluster() {
    for (const auto& [task, child] : children_) child->send_signal(SIGKILL);
  }

  void start(const TaskName& task) {
    children_[task] = start_child(
        "Task", {{"LEAT_TEST_SPEC", spec_.to_json()}, {"LEAT_TEST_TASK", task.to_string()}});
  }
  void restart(const TaskName& task) {
    start(task);
    children_[task]->wait_for("task ready");
  }
  void signal(const TaskName& task, int number) { children_.at(task)->send_signal(number); }
  std::string target() const { return "grpc://" + spec_.address(master); }
  std::string label(const TaskName& task) const {
    return concat(task, " (", task == master ? "grpc://" : "", spec_.address(task), ")");
  }
  std::unique_ptr<SessionInterface> session(const Graph& graph,
                                            milliseconds timeout = seconds(60)) const {
    SessionOptions options;
    options.target = target();
    options.timeout = timeout;
    auto session = new_session(options);
    session->extend(graph);
    return session;
  }
  // Steps that run on any task, as `leat top` sees them.
  size_t steps(const TaskName& asked = worker) const {
    size_t count = 0;
    for (const TaskView& task : view_cluster("grpc://" + spec_.address(asked)).tasks)
      count += task.activity.steps.size();
    return count;
  }
  // Steps that have reached the gate.
  bool is_held() const {
    return to_text(view_cluster(target())).find("runs TestGate") != std::string::npos;
  }

 private:
  ClusterSpec spec_;
  std::map<TaskName, std::unique_ptr<ChildProcess>> children_;
};

struct Case {
  TaskName victim;
  bool is_killed;  // or frozen
  bool is_during;  // a step; or idle
};

std::string name_of(const testing::TestParamInfo<Case>& info) {
  const Case& c = info.param;
  return concat(c.victim == ps       ? "Ps"
                : c.victim == master ? "Master"
                                     : "Worker",
                c.is_killed ? "Killed" : "Frozen", c.is_during ? "InAStep" : "WhenIdle");
}

class ProcessFault : public testing::TestWithParam<Case> {};
INSTANTIATE_TEST_SUITE_P(Roles, ProcessFault, testing::ValuesIn([] {
                           std::vector<Case> out;
                           for (const TaskName& victim : {ps, master, worker}) {
                             for (const bool is_killed : {true, false}) {
                               for (const bool is_during : {true, false})
                                 out.push_back({victim, is_killed, is_during});
                             }
                           }
                           return out;
                         }()),
                         name_of);

TEST_P(ProcessFault, IsNamedInTimeAndTheClusterContinues) {
  const auto& [victim, is_killed, is_in_step] = GetParam();
  const bool is_during = is_in_step;
  ProcessCluster cluster;
  const Graph graph = model();
  auto session = cluster.session(graph);
  session->run({}, {}, {"init"});
  session->run({}, {}, {"add"});
  session->run({}, {"y:0"}, {});

  auto step = std::async(is_during ? std::launch::async : std::launch::deferred, [&] {
    return error_of([&] { session->run({}, {is_during ? "z:0" : "y:0"}, {}); });
  });
  if (is_during) {
    ASSERT_TRUE(eventually([&] { return cluster.is_held(); }));
  }
  cluster.signal(victim, is_killed ? SIGKILL : SIGSTOP);
  const auto begin = Clock::now();
  const Status status = step.get();
  const auto took = Clock::now() - begin;
  RecordProperty("milliseconds", static_cast<int>(took / milliseconds(1)));

  EXPECT_THAT(std::string(code_name(status.code)), AnyOf("UNAVAILABLE", "ABORTED"))
      << status.message;
  EXPECT_THAT(status.message, HasSubstr(cluster.label(victim)));
  if (victim != master) {
    EXPECT_THAT(status.message, HasSubstr("owed"));
  }
  EXPECT_LT(took, is_killed ? killed_limit : frozen_limit) << status.message;

  if (is_killed) {
    cluster.restart(victim);
  } else {
    cluster.signal(victim, SIGCONT);
  }
  // Blocked steps are given up everywhere but in the kernel that holds the gate.
  Status last;
  EXPECT_TRUE(eventually([&] {
    last = error_of([&] {
      session = cluster.session(graph, seconds(10));
      session->run({}, {"y:0"}, {});
    });
    return last.is_ok() || last.code == Code::failed_precondition;
  })) << last.message;
  if (victim == ps && is_killed) {  // the error must say that its variables are gone
    EXPECT_THAT(last.message, HasSubstr("Attempting to use uninitialized value w (on /job:ps/"));
    session->run({}, {}, {"init"});
    session->run({}, {}, {"add"});
  }
  EXPECT_EQ(session->run({}, {"y:0"}, {})[0].item<float>(), 2);
}

// The session waits for tasks that are starting; a frozen task does not start.
TEST(ProcessFaultSession, NamesAFrozenTaskInTime) {
  ProcessCluster cluster;
  const Graph graph = model();
  cluster.session(graph)->run({}, {}, {"init"});
  cluster.signal(ps, SIGSTOP);
  const auto begin = Clock::now();
  const Status status = error_of([&] { cluster.session(graph); });
  EXPECT_LT(Clock::now() - begin, frozen_limit);
  EXPECT_THAT(std::string(code_name(status.code)), AnyOf("UNAVAILABLE", "ABORTED"));
  EXPECT_THAT(status.message, AllOf(HasSubstr(cluster.label(ps)), HasSubstr("last heard ")));
  cluster.signal(ps, SIGCONT);
  Status last;
  EXPECT_TRUE(eventually([&] {  // once the tasks are connected again
    last = error_of([&] { cluster.session(graph)->run({}, {"y:0"}, {}); });
    return last.is_ok();
  })) << last.message;
}

TEST(ProcessFaultClient, KilledDuringAStepEndsTheStep) {
  ProcessCluster cluster;
  const Graph graph = model();
  const auto session = cluster.session(graph);
  session->run({}, {}, {"init"});
  const auto client = start_child("Client", {{"LEAT_TEST_TARGET", cluster.target()}});
  client->wait_for("client ready");
  ASSERT_TRUE(eventually([&] { return cluster.is_held(); }));
  client->send_signal(SIGKILL);
  // One part remains: the kernel on the ps that holds the gate.
  EXPECT_TRUE(eventually([&] { return cluster.steps() <= 1; }));
  session->run({}, {}, {"add"});
  EXPECT_EQ(session->run({}, {"y:0"}, {})[0].item<float>(), 2);
}

TEST(ProcessFaultClient, FrozenAffectsNobodyAndContinuesWhenItWakes) {
  ProcessCluster cluster;
  const Graph graph = model();
  const auto session = cluster.session(graph);
  session->run({}, {}, {"init"});
  const auto client = start_child("Client", {{"LEAT_TEST_TARGET", cluster.target()}});
  client->wait_for("client ready");
  ASSERT_TRUE(eventually([&] { return cluster.is_held(); }));
  client->send_signal(SIGSTOP);
  for (int i = 0; i < 20; ++i) session->run({}, {}, {"add"});
  EXPECT_EQ(session->run({}, {"y:0"}, {})[0].item<float>(), 21);
  // It does not answer pings: its step is given up.
  EXPECT_TRUE(eventually([&] { return cluster.steps() <= 1; }));
  client->send_signal(SIGCONT);
  client->wait(seconds(60));
  EXPECT_THAT(client->output(),
              AnyOf(HasSubstr(cluster.label(master)), HasSubstr("its connection was lost")));
}

}  // namespace
}  // namespace leat
