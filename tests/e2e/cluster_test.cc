// Real tasks as real processes: how a cluster starts, which tasks may join it, and which error
// appears when a part of it dies.
#include <arpa/inet.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <signal.h>
#include <sys/socket.h>
#include <unistd.h>

#include <fstream>
#include <regex>
#include <sstream>

#include "core/error.h"
#include "core/memory/lasting_memory.h"
#include "core/memory/slot_memory.h"
#include "tests/support/child_process.h"
#include "tests/support/sanitizers.h"
#include "tests/support/scratch_directory.h"

namespace leat {
namespace {

using std::chrono::seconds;
using testing::AllOf;
using testing::HasSubstr;

// Drawing the digits takes seconds on a processor that other tests and builds may keep busy.
constexpr auto first_step_limit = seconds(100);

// A row of the start-up table.
struct Row {
  std::string address;
  pid_t pid = 0;
};

// A port of 127.0.0.1 on which somebody listens.
class TakenPort {
 public:
  TakenPort() : socket_(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t length = sizeof address;
    EXPECT_EQ(bind(socket_, reinterpret_cast<sockaddr*>(&address), length), 0);
    EXPECT_EQ(listen(socket_, 1), 0);
    EXPECT_EQ(getsockname(socket_, reinterpret_cast<sockaddr*>(&address), &length), 0);
    port_ = ntohs(address.sin_port);
  }
  ~TakenPort() { close(socket_); }
  TakenPort(const TakenPort&) = delete;
  std::string address() const { return "127.0.0.1:" + std::to_string(port_); }

 private:
  int socket_;
  int port_ = 0;
};

class Cluster : public testing::Test {
 protected:
  std::string logs() const { return folder_ / "logs"; }
  std::string write(const std::string& name, const std::string& text) const {
    std::ofstream(folder_ / name) << text;
    return folder_ / name;
  }
  std::vector<std::string> leat(std::vector<std::string> arguments) const {
    arguments.insert(arguments.begin(), LEAT_BIN_DIR "/leat");
    return arguments;
  }
  // A training program that runs until something ends it.
  std::vector<std::string> endless_training(
      const std::string& strategy, std::vector<std::string> flags = {},
      const std::string& cluster = "local:ps=1,worker=2") const {
    flags.insert(flags.begin(), {"run", cluster, "--log-dir", logs()});
    for (const char* argument : {"--", LEAT_BIN_DIR "/examples/mnist", "--epochs", "1000000"})
      flags.emplace_back(argument);
    flags.insert(flags.end(), {"--strategy", strategy});
    return leat(flags);
  }

  static Row row(const std::string& output, const std::string& task) {
    std::smatch found;
    if (!std::regex_search(output, found,
                           std::regex(task + " +(127[.0-9]+:[0-9]+) +([0-9]+) +ready"))) {
      ADD_FAILURE() << "no ready " << task << " in the table:\n" << output;
      return {};
    }
    return {found[1], std::stoi(found[2])};
  }
  static std::vector<pid_t> all_pids(const std::string& output) {
    std::vector<pid_t> out;
    const std::regex pattern("/job:[a-z]+/task:[0-9]+ +127[.0-9]+:[0-9]+ +([0-9]+)");
    for (std::sregex_iterator at(output.begin(), output.end(), pattern), end; at != end; ++at)
      out.push_back(std::stoi((*at)[1]));
    return out;
  }
  // Processes whose parent is `pid`.
  static std::vector<pid_t> children_of(pid_t pid) {
    std::ifstream file("/proc/" + std::to_string(pid) + "/task/" + std::to_string(pid) +
                       "/children");
    std::vector<pid_t> out;
    for (pid_t child = 0; file >> child;) out.push_back(child);
    return out;
  }

  const ScratchDirectory folder_;
};

TEST_F(Cluster, StartsPrintsItsTableAndEndsOnSigterm) {
  ChildProcess up(leat({"up", "local:ps=1,worker=2", "--log-dir", logs()}));
  const std::string output = up.wait_for("Ctrl-C ends it");
  for (const char* task : {"/job:ps/task:0", "/job:worker/task:0", "/job:worker/task:1"})
    EXPECT_GT(row(output, task).pid, 0);
  const std::vector<pid_t> pids = all_pids(output);
  ASSERT_EQ(pids.size(), 3u);
  up.send_signal(SIGTERM);
  EXPECT_EQ(up.wait(), 0);
  expect_gone(pids);
}

TEST_F(Cluster, NamesATakenPort) {
  const TakenPort taken;
  const std::string file =
      write("cluster.json",
            R"({"cluster": {"ps": ["127.0.0.1:0"], "worker": [")" + taken.address() + R"("]}})");
  ChildProcess up(leat({"up", file, "--log-dir", logs()}));
  EXPECT_EQ(up.wait(), 1);
  EXPECT_THAT(up.output(), AllOf(HasSubstr("/job:worker/task:0"), HasSubstr(taken.address()),
                                 HasSubstr("ddress already in use")));
  expect_gone(all_pids(up.output()));
}

TEST_F(Cluster, RejectsASecondOwnerOfATask) {
  const std::string first = write(
      "first.json",
      R"({"cluster": {"ps": ["127.0.0.1:0"], "worker": ["127.0.0.1:0"]}, "cluster_id": "one"})");
  ChildProcess up(leat({"up", first, "--log-dir", logs()}));
  const std::string output = up.wait_for("Ctrl-C ends it");
  // The same task of the same cluster, at another address.
  const std::string second =
      write("second.json", R"({"cluster": {"ps": [")" + row(output, "/job:ps/task:0").address +
                               R"("], "worker": ["127.0.0.1:0"]}, "cluster_id": "one"})");
  ChildProcess intruder(
      leat({"task", second, "--job", "worker", "--task", "0", "--start-timeout", "30"}));
  EXPECT_NE(intruder.wait(), 0);
  EXPECT_THAT(intruder.output(), AllOf(HasSubstr("/job:worker/task:0"), HasSubstr("owner")));
  EXPECT_TRUE(is_alive(row(output, "/job:worker/task:0").pid));
  up.send_signal(SIGTERM);
  EXPECT_EQ(up.wait(), 0);
}

TEST_F(Cluster, NamesAKilledTaskAndStopsTheRest) {
  ChildProcess up(leat({"up", "local:ps=1,worker=2", "--log-dir", logs()}));
  const std::string output = up.wait_for("Ctrl-C ends it");
  kill(row(output, "/job:worker/task:1").pid, SIGKILL);
  EXPECT_EQ(up.wait(), 128 + SIGKILL);
  EXPECT_THAT(up.output(), AllOf(HasSubstr("leat: [worker:1] task /job:worker/task:1 (" +
                                           row(output, "/job:worker/task:1").address),
                                 HasSubstr("killed by signal 9 (SIGKILL)")));
  expect_gone(all_pids(output));
}

// Checks the program's own malloc (tools/leat/malloc.cc), not its heap.
TEST_F(Cluster, TasksReserveSlotAndGraphMemory) {
#ifdef LEAT_UNDER_SANITIZER
  GTEST_SKIP() << "a sanitizer has a malloc of its own";
#endif
  ChildProcess run(endless_training("parameter_server"));
  const std::string output = run.wait_for("[worker:0] step ", first_step_limit);
  std::ifstream maps(concat("/proc/", row(output, "/job:ps/task:0").pid, "/maps"));
  constexpr size_t of_slots = SlotMemory::slots * SlotMemory::most;
  constexpr size_t of_graphs = LastingMemory::pages * LastingMemory::page_bytes;
  size_t reserved = 0;  // the two may be one mapping
  uintptr_t begin = 0, end = 0;
  char dash = 0;
  for (std::string line; std::getline(maps, line);) {
    std::istringstream range(line);
    range >> std::hex >> begin >> dash >> end;
    if (line.find("rw-p") != std::string::npos && end - begin >= std::min(of_slots, of_graphs))
      reserved += end - begin;
  }
  EXPECT_GE(reserved, of_slots + of_graphs);
  run.send_signal(SIGTERM);
  run.wait();
}

// Kills each role of a training in turn; `mode` is asynchronous or synchronous.
class Killed : public Cluster, public testing::WithParamInterface<const char*> {
 protected:
  // Kills a task while steps run, and returns the output.
  std::string output_after_killing(const std::string& task, ChildProcess& run) {
    const std::string output = run.wait_for("[worker:0] step ", first_step_limit);
    killed_ = row(output, task);
    const std::vector<pid_t> children = children_of(run.pid());
    EXPECT_EQ(kill(killed_.pid, SIGKILL), 0);
    EXPECT_EQ(run.wait(),
              128 + SIGKILL);  // the root cause's status, not that of the programs that noticed
    expect_gone(children);
    return run.output();
  }

  // A program reported it in its own words before it was stopped: code, task, address.
  void expect_told_by_a_program(const std::string& output, const std::string& task) const {
    const std::regex told("\\[worker:[0-9]\\] [^\n]*(UNAVAILABLE|ABORTED)[^\n]*" + task + "[^\n]*" +
                          std::regex_replace(killed_.address, std::regex("\\."), "\\."));
    EXPECT_TRUE(std::regex_search(output, told)) << output;
  }

  Row killed_;
};
constexpr const char* asynchronous = "parameter_server";
constexpr const char* synchronous = "parameter_server:staleness=0";
INSTANTIATE_TEST_SUITE_P(Strategies, Killed, testing::Values(asynchronous, synchronous),
                         [](const auto& info) {
                           return std::string_view(info.param) == synchronous ? "synchronous"
                                                                              : "asynchronous";
                         });

// Without a parameter server.
class KilledWithoutServers : public Killed {};
INSTANTIATE_TEST_SUITE_P(Strategies, KilledWithoutServers,
                         testing::Values("all_reduce", "all_reduce:replicas=per_worker",
                                         "local_sgd", "pipeline"),
                         [](const auto& info) {
                           std::string name = info.param;
                           std::erase_if(name, [](char c) { return c == ':' || c == '='; });
                           return name;
                         });

TEST_P(KilledWithoutServers, WorkersTask) {
  ChildProcess run(endless_training(GetParam(), {}, "local:worker=3"));
  const std::string output = output_after_killing("/job:worker/task:1", run);
  EXPECT_THAT(output,
              HasSubstr("leat: [worker:1 task] task /job:worker/task:1 (" + killed_.address));
  expect_told_by_a_program(output, "/job:worker/task:1");
}

TEST_P(Killed, ParameterServer) {
  ChildProcess run(endless_training(GetParam()));
  const std::string output = output_after_killing("/job:ps/task:0", run);
  EXPECT_THAT(output, HasSubstr("leat: [ps:0] task /job:ps/task:0 (" + killed_.address));
  expect_told_by_a_program(output, "/job:ps/task:0");
  EXPECT_THAT(output, HasSubstr("owed"));
}

TEST_P(Killed, WorkersTask) {
  ChildProcess run(endless_training(GetParam()));
  const std::string output = output_after_killing("/job:worker/task:1", run);
  EXPECT_THAT(output,
              HasSubstr("leat: [worker:1 task] task /job:worker/task:1 (" + killed_.address));
  expect_told_by_a_program(output, "/job:worker/task:1");
}

TEST_P(Killed, ChiefsProgram) {
  ChildProcess run(endless_training(GetParam()));
  run.wait_for("[worker:0] step ", first_step_limit);
  const std::vector<pid_t> children = children_of(run.pid());
  const std::vector<pid_t> tasks = all_pids(run.output());
  for (const pid_t child : children) {
    std::ifstream file("/proc/" + std::to_string(child) + "/environ");
    const std::string environment{std::istreambuf_iterator<char>(file), {}};
    if (environment.find(R"("task":{"index":0,"type":"worker"})") != std::string::npos)
      kill(child, SIGKILL);
  }
  EXPECT_EQ(run.wait(), 128 + SIGKILL);
  EXPECT_TRUE(std::regex_search(
      run.output(), std::regex("leat: \\[worker:0\\] program [^\n]*mnist[^\n]*killed by signal 9")))
      << run.output();
  expect_gone(children);
  expect_gone(tasks);
}

// The program is the task: one process to kill, one root cause.
TEST_P(Killed, EmbeddedProgram) {
  ChildProcess run(endless_training(GetParam(), {"--embed"}));
  const std::string output = output_after_killing("/job:worker/task:1", run);
  EXPECT_TRUE(std::regex_search(
      output, std::regex("leat: \\[worker:1\\] program [^\n]*mnist, which is task "
                         "/job:worker/task:1 [^\n]*killed by signal 9")))
      << output;
  if (std::string_view(GetParam()) == synchronous)
    expect_told_by_a_program(output, "/job:worker/task:1");
}

TEST_P(Killed, ParameterServerOfEmbeddedPrograms) {
  ChildProcess run(endless_training(GetParam(), {"--embed"}));
  const std::string output = output_after_killing("/job:ps/task:0", run);
  EXPECT_THAT(output, HasSubstr("leat: [ps:0] task /job:ps/task:0 (" + killed_.address));
  expect_told_by_a_program(output, "/job:ps/task:0");
}

TEST_P(Killed, LauncherItself) {
  ChildProcess run(endless_training(GetParam()));
  run.wait_for("[worker:0] step ", first_step_limit);
  const std::vector<pid_t> children = children_of(run.pid());
  ASSERT_GE(children.size(), 4u);
  run.send_signal(SIGKILL);
  EXPECT_EQ(run.wait(), 128 + SIGKILL);
  expect_gone(children);
}

}  // namespace
}  // namespace leat
