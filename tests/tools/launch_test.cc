// The parts of the launcher that need no process: which hosts are local, the messages, and which
// failure is the root cause.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <unistd.h>

#include <future>

#include "core/error.h"
#include "distributed/cluster/host_owner.h"
#include "distributed/cluster/launcher_link.h"
#include "tools/leat/cluster_source.h"
#include "tools/leat/failure_report.h"
#include "tools/leat/gpu_shares.h"
#include "tools/leat/process.h"
#include "tools/leat/startup_table.h"

namespace leat {
namespace {

using std::chrono::milliseconds;
using testing::HasSubstr;

template <class Action>
Error error_of(Action action) {
  try {
    action();
  } catch (const Error& error) {
    return error;
  }
  ADD_FAILURE() << "no error was thrown";
  return Error(Code::ok, "");
}

TEST(ClusterSource, LocalJobsGetOpenPorts) {
  const ClusterSpec spec = resolve_cluster("local:ps=1,worker=2").spec;
  EXPECT_EQ(spec.tasks(), (std::vector<TaskName>{{"ps", 0}, {"worker", 0}, {"worker", 1}}));
  EXPECT_TRUE(spec.has_open_ports());
  EXPECT_EQ(spec.address({"worker", 1}), "127.0.0.1:0");
}

TEST(ClusterSource, ReportsMistakesInLocalJobs) {
  for (const char* source :
       {"local:", "local:ps", "local:ps=0", "local:ps=x", "local:ps=1x", "local:ps=100000"}) {
    const Error error = error_of([&] { resolve_cluster(source); });
    EXPECT_EQ(error.code(), Code::invalid_argument) << source;
    EXPECT_THAT(error.message(), HasSubstr("local:ps=1,worker=2")) << source;
  }
  EXPECT_EQ(error_of([] { resolve_cluster("no_such_file.json"); }).code(), Code::not_found);
}

TEST(ClusterSource, RecognisesThisHost) {
  for (const char* host : {"localhost", "127.0.0.1", "127.3.2.1", "::1", "0.0.0.0"})
    EXPECT_EQ(owner_of_host(host), HostOwner::ours) << host;
  char name[256] = {};
  ASSERT_EQ(gethostname(name, sizeof name - 1), 0);
  EXPECT_EQ(owner_of_host(name), HostOwner::ours);
  EXPECT_EQ(owner_of_host("192.0.2.1"), HostOwner::other);  // reserved for documentation
}

TEST(GpuShares, GiveEachTaskItsOwn) {
  ClusterSpec cluster = resolve_cluster("local:ps=1,worker=3").spec;
  cluster.set_gpus({"worker"});
  const auto shares = [&](const std::vector<std::string>& gpus) {
    std::vector<std::string> out;
    for (const auto& [task, own] : gpu_shares(cluster, cluster.tasks(), gpus))
      out.push_back(concat(task.to_string(), " ", own));
    return out;
  };
  EXPECT_THAT(shares({}), testing::IsEmpty());
  EXPECT_THAT(shares({"0"}), testing::ElementsAre("/job:worker/task:0 0", "/job:worker/task:1 0",
                                                  "/job:worker/task:2 0"));
  EXPECT_THAT(
      shares({"4", "5"}),
      testing::ElementsAre("/job:worker/task:0 4", "/job:worker/task:1 5", "/job:worker/task:2 4"));
  EXPECT_THAT(shares({"0", "1", "2", "3", "4", "5", "6"}),
              testing::ElementsAre("/job:worker/task:0 0,1", "/job:worker/task:1 2,3",
                                   "/job:worker/task:2 4,5,6"));
  cluster.set_gpus({"/job:worker/task:1"});
  EXPECT_THAT(shares({"0", "1"}), testing::IsEmpty()) << "it has all of them";
}

TEST(GpuShares, AreOfTheVisibleOnes) {
  ASSERT_EQ(setenv("CUDA_VISIBLE_DEVICES", "2,GPU-ab,5", 1), 0);
  EXPECT_THAT(gpus_of_this_host(), testing::ElementsAre("2", "GPU-ab", "5"));
  ASSERT_EQ(setenv("CUDA_VISIBLE_DEVICES", "3,-1,4", 1), 0);
  EXPECT_THAT(gpus_of_this_host(), testing::ElementsAre("3"));
  ASSERT_EQ(setenv("CUDA_VISIBLE_DEVICES", "", 1), 0);
  EXPECT_THAT(gpus_of_this_host(), testing::IsEmpty());
  ASSERT_EQ(unsetenv("CUDA_VISIBLE_DEVICES"), 0);
}

// A cluster of thousands of tasks is longer than a socket's buffer.
TEST(Process, DeliversLongLinesToAReader) {
  const std::string line = std::string(5'000'000, 'x') + "\n";
  int fds[2];
  ASSERT_EQ(socketpair(AF_UNIX, SOCK_STREAM, 0, fds), 0);
  const Fd ours(fds[0]);
  Fd theirs(fds[1]);
  EXPECT_FALSE(send_line(ours, line, milliseconds(20)));  // nobody reads
  char buffer[65536];
  while (recv(theirs.get(), buffer, sizeof buffer, MSG_DONTWAIT) > 0) continue;
  auto received = std::async(std::launch::async, [&] {
    std::string text;
    while (!text.ends_with('\n')) {
      const ssize_t got = recv(theirs.get(), buffer, sizeof buffer, 0);
      if (got <= 0) break;
      text.append(buffer, static_cast<size_t>(got));
    }
    return text;
  });
  EXPECT_TRUE(send_line(ours, line, milliseconds(60'000)));
  EXPECT_EQ(received.get(), line);
  theirs.close();
  EXPECT_FALSE(send_line(ours, line, milliseconds(60'000)));  // the reader has gone
}

TEST(TaskReport, RoundTripsAsALine) {
  TaskReport report;
  report.state = TaskReport::State::waiting;
  report.missing.resize(1);
  report.missing[0] = {{"worker", 1}, "10.0.0.2:2222", "connection \"refused\"\n", true};
  const std::string line = report.to_line();
  EXPECT_EQ(line.find('\n'), line.size() - 1);
  const TaskReport parsed = TaskReport::parse(line);
  EXPECT_EQ(parsed.state, TaskReport::State::waiting);
  ASSERT_EQ(parsed.missing.size(), 1u);
  EXPECT_EQ(parsed.missing[0].task, (TaskName{"worker", 1}));
  EXPECT_EQ(parsed.missing[0].reason, "connection \"refused\"\n");
  EXPECT_TRUE(parsed.missing[0].is_refused);
}

TEST(TaskReport, RejectsOtherLines) {
  for (const char* line : {"", "hello", "[]", "{}", R"({"state": "odd"})",
                           R"({"state": "waiting", "missing": [{}]})"}) {
    EXPECT_EQ(error_of([&] { TaskReport::parse(line); }).code(), Code::invalid_argument) << line;
  }
}

class LinkPair {
 public:
  LinkPair() { EXPECT_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds_), 0); }
  ~LinkPair() { close(fds_[1]), hang_up(); }
  int task() const { return fds_[1]; }
  std::string read_line() const {
    std::string line;
    for (char c = 0; c != '\n' && recv(fds_[0], &c, 1, 0) == 1;) line += c;
    return line;
  }
  void write(const std::string& text) const {
    EXPECT_EQ(::send(fds_[0], text.data(), text.size(), 0), ssize_t(text.size()));
  }
  void hang_up() {
    if (fds_[0] >= 0) close(std::exchange(fds_[0], -1));
  }

 private:
  int fds_[2];
};

TEST(LauncherLink, SendsTheAddressAndReceivesTheCluster) {
  LinkPair pair;
  LauncherLink link(pair.task());
  const ClusterSpec open = resolve_cluster("local:ps=1,worker=1").spec;
  auto filled = std::async(std::launch::async, [&] {
    return link.bound(open, {"ps", 0}, "127.0.0.1:4000", milliseconds(10'000));
  });
  EXPECT_EQ(TaskReport::parse(pair.read_line()).address, "127.0.0.1:4000");
  pair.write(R"({"cluster": {"ps": ["127.0.0.1:4000"], )");  // in two pieces
  pair.write("\"worker\": [\"127.0.0.1:4001\"]}}\n");
  EXPECT_EQ(filled.get().address({"worker", 0}), "127.0.0.1:4001");
}

TEST(LauncherLink, DistinguishesASilentLauncherFromALostOne) {
  LinkPair pair;
  LauncherLink link(pair.task());
  const ClusterSpec open = resolve_cluster("local:ps=1,worker=1").spec;
  EXPECT_EQ(error_of([&] {
              link.bound(open, {"ps", 0}, "127.0.0.1:4000", milliseconds(20));
            }).code(),
            Code::deadline_exceeded);
  pair.hang_up();
  EXPECT_EQ(error_of([&] {
              link.bound(open, {"ps", 0}, "127.0.0.1:4000", milliseconds(10'000));
            }).code(),
            Code::cancelled);
}

TEST(LauncherLink, OnlyTheOwnPortMayBeOpenWithoutALauncher) {
  LauncherLink link(-1);
  link.ready("nobody hears this");
  ClusterSpec spec = resolve_cluster("local:ps=1,worker=1").spec;
  EXPECT_EQ(error_of([&] {
              link.bound(spec, {"ps", 0}, "127.0.0.1:4000", milliseconds(1));
            }).code(),
            Code::invalid_argument);
  spec.set_address({"worker", 0}, "127.0.0.1:4001");
  EXPECT_EQ(link.bound(spec, {"ps", 0}, "127.0.0.1:4000", milliseconds(1)).address({"ps", 0}),
            "127.0.0.1:4000");
}

TEST(StartupTable, AlignsItsColumns) {
  using Seconds = std::chrono::duration<double>;
  std::vector<StartupRow> rows(2);
  rows[0] = {{"ps", 0}, "10.0.0.1:2222", 4711, "ready", Seconds(0.2), "16 cores"};
  rows[1] = {
      {"worker", 1}, "10.0.1.2:2222", 0,
      "no answer",   Seconds(60),     "connection refused: is `leat up` running on 10.0.1.2?"};
  EXPECT_EQ(
      format_startup_table(rows),
      "task                address        pid   state      after  detail\n"
      "/job:ps/task:0      10.0.0.1:2222  4711  ready       0.2s  16 cores\n"
      "/job:worker/task:1  10.0.1.2:2222  -     no answer  60.0s  connection refused: is `leat up` "
      "running on 10.0.1.2?\n");
}

Failure failure(const char* label, double after, Ending ending, bool is_task = false,
                bool was_stopped = false) {
  return {.label = label,
          .what = is_task ? "task" : "program",
          .is_task = is_task,
          .ending = ending,
          .after = std::chrono::duration<double>(after),
          .was_stopped = was_stopped,
          .last_lines = {"last words of " + std::string(label)},
          .log = "some.log"};
}

TEST(FailureReport, FirstFailureIsTheCause) {
  const std::vector<Failure> failures{failure("[worker:0]", 5, {.exit_status = 1}),
                                      failure("[worker:1]", 4, {.exit_status = 7}),
                                      failure("[ps:0]", 1, {.signal = 15}, true, true)};
  EXPECT_EQ(root_cause(failures), 1u);
  const std::string report = format_failure_report(failures);
  EXPECT_TRUE(report.starts_with("leat: [worker:1] program: exit status 7, 4.0 s after the start."))
      << report;
  EXPECT_THAT(report, HasSubstr("        last words of [worker:1]\n"));
  EXPECT_THAT(report,
              HasSubstr("1.0 s later [worker:0] program: exit status 1: last words of [worker:0]"));
  EXPECT_THAT(report, HasSubstr("Stopped because of it: [ps:0]"));
}

TEST(FailureReport, OmitsRepeatedLastLines) {
  std::vector<Failure> failures{failure("[worker:0]", 4, {.exit_status = 1}),
                                failure("[worker:1]", 4.5, {.exit_status = 1})};
  failures[1].last_lines = failures[0].last_lines;
  EXPECT_THAT(
      format_failure_report(failures),
      HasSubstr("0.5 s later [worker:1] program: exit status 1, with the same last line\n"));
}

TEST(FailureReport, KilledTaskOutranksTheProgramThatNoticed) {
  // Within one tick of the clock, in any order.
  const std::vector<Failure> failures{failure("[worker:0]", 3.00, {.exit_status = 1}),
                                      failure("[ps:0]", 3.01, {.signal = 9}, true)};
  EXPECT_EQ(root_cause(failures), 1u);
  EXPECT_THAT(format_failure_report(failures), HasSubstr("killed by signal 9 (SIGKILL)"));
}

TEST(Ending, ReturnsTheShellsStatus) {
  EXPECT_EQ((Ending{.exit_status = 3}).shell_status(), 3);
  EXPECT_EQ((Ending{.signal = 9}).shell_status(), 137);
}

}  // namespace
}  // namespace leat
