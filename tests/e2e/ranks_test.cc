// Ranks that mpirun and srun start: each is a task under its own `leat run`. Skipped where the
// launcher is not installed, or Slurm has no node.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>

#include <cstdlib>
#include <map>
#include <regex>

#include "core/error.h"
#include "distributed/grpc/rpc_server.h"
#include "tests/support/child_process.h"
#include "tests/support/sanitizers.h"

namespace leat {
namespace {

using testing::HasSubstr;
using testing::Not;

#ifdef LEAT_UNDER_SANITIZER
constexpr std::chrono::seconds limit{400};
#else
constexpr std::chrono::seconds limit{100};
#endif

constexpr int ranks = 3;

// The first of `ranks` ports that were free a moment ago.
int free_ports() {
  while (true) {
    RpcServer first;
    const int port = first.start("127.0.0.1:0");
    bool are_free = true;
    for (int i = 1; i < ranks && are_free; ++i) {
      try {
        RpcServer next;
        next.start(concat("127.0.0.1:", port + i));
      } catch (const Error&) {
        are_free = false;
      }
    }
    if (are_free) return port;
  }
}

struct Launcher {
  std::vector<std::string> command;
  std::string source;                   // mpi or slurm
  ChildProcess::Environment variables;  // mpirun refuses to start anything as root without them
};

bool succeeds(const std::string& command) {
  return std::system((command + " > /dev/null 2>&1").c_str()) == 0;
}

class Ranks : public testing::TestWithParam<const char*> {
 protected:
  void SetUp() override {
    const std::string count = std::to_string(ranks);
    if (GetParam() == std::string("mpirun")) {
      if (!succeeds("mpirun --version | grep 'Open MPI'"))
        GTEST_SKIP() << "Open MPI is not installed";
      launcher_ = {{"mpirun", "--oversubscribe", "-n", count},
                   "mpi",
                   {{"OMPI_ALLOW_RUN_AS_ROOT", "1"}, {"OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1"}}};
    } else {
      if (!succeeds("sinfo -h | grep .")) GTEST_SKIP() << "there is no Slurm here";
      launcher_ = {{"srun", "--kill-on-bad-exit", "--oversubscribe", "-n", count}, "slurm", {}};
    }
  }

  // LAUNCHER -n 3 leat run SOURCE:JOBS -- mnist …
  std::vector<std::string> ranks_of(const std::string& jobs, std::vector<std::string> mnist) const {
    std::vector<std::string> out = launcher_.command;
    for (const std::string& each : {std::string(LEAT_BIN_DIR "/leat"), std::string("run"),
                                    concat(launcher_.source, ":", jobs, ",port=", free_ports()),
                                    std::string("--"), std::string(LEAT_BIN_DIR "/examples/mnist")})
      out.push_back(each);
    out.insert(out.end(), mnist.begin(), mnist.end());
    return out;
  }

  Launcher launcher_;
};

// By the name of the task, such as worker:1.
std::map<std::string, pid_t> tasks_in(const std::string& output) {
  const std::regex ready("/job:(ps|worker)/task:([0-9]+) ready at .*, pid ([0-9]+)");
  std::map<std::string, pid_t> out;
  for (std::sregex_iterator at(output.begin(), output.end(), ready), end; at != end; ++at)
    out[concat((*at)[1].str(), ":", (*at)[2].str())] = std::stoi((*at)[3]);
  return out;
}

void expect_gone(const std::map<std::string, pid_t>& tasks) {
  std::vector<pid_t> pids;
  for (const auto& [name, pid] : tasks) pids.push_back(pid);
  leat::expect_gone(pids);
}

TEST_P(Ranks, TrainWithEachOfThreeStrategies) {
  for (const auto& [strategy, jobs] :
       {std::pair("parameter_server", "ps=1,worker=*"), std::pair("all_reduce", "worker=*"),
        std::pair("local_sgd", "worker=*")}) {
    ChildProcess run(ranks_of(jobs, {"--strategy", strategy, "--epochs", "3"}),
                     launcher_.variables);
    EXPECT_EQ(run.wait(limit), 0) << run.output();
    const std::string output = run.output();
    const std::regex result("test accuracy ([0-9.]+) %");
    std::smatch found;
    ASSERT_TRUE(std::regex_search(output, found, result)) << output;
    EXPECT_GT(std::stod(found[1]), 85.0) << output;
    // The chief alone prints it.
    EXPECT_EQ(std::distance(std::sregex_iterator(output.begin(), output.end(), result), {}), 1)
        << output;
    EXPECT_THAT(output, Not(HasSubstr("each of them trains alone")));
  }
}

TEST_P(Ranks, AKilledRankEndsTheOthers) {
  ChildProcess run(
      ranks_of("ps=1,worker=*", {"--strategy", "parameter_server", "--epochs", "5000"}),
      launcher_.variables);
  const std::string output = run.wait_for(" loss ", limit);
  const auto tasks = tasks_in(output);
  ASSERT_EQ(tasks.size(), ranks) << output;
  kill(tasks.at("worker:1"), SIGKILL);
  EXPECT_NE(run.wait(limit), 0);
  EXPECT_THAT(run.output(), HasSubstr("[worker:1 task] the task ended (killed by signal 9"));
  expect_gone(tasks);
}

// Slurm's own daemon ends the ranks of a killed srun.
TEST_P(Ranks, EndWithAKilledMpirun) {
  if (launcher_.source != "mpi") GTEST_SKIP() << "only for mpirun";
  ChildProcess run(ranks_of("worker=*", {"--strategy", "all_reduce", "--epochs", "5000"}),
                   launcher_.variables);
  const auto tasks = tasks_in(run.wait_for(" loss ", limit));
  ASSERT_EQ(tasks.size(), ranks);
  run.send_signal(SIGKILL);
  expect_gone(tasks);
}

TEST_P(Ranks, AProgramWithoutLeatRunSaysThatItIsAlone) {
  std::vector<std::string> command = launcher_.command;
  for (const char* each : {LEAT_BIN_DIR "/examples/mnist", "--epochs", "1"})
    command.push_back(each);
  ChildProcess run(command, launcher_.variables);
  EXPECT_EQ(run.wait(limit), 0) << run.output();
  EXPECT_THAT(run.output(), HasSubstr(concat(launcher_.command[0], " started 3 copies of this ",
                                             "program, and each of them trains alone")));
}

INSTANTIATE_TEST_SUITE_P(By, Ranks, testing::Values("mpirun", "srun"),
                         [](const auto& info) { return std::string(info.param); });

}  // namespace
}  // namespace leat
