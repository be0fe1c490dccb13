// `leat up` and `leat run` around tasks that misbehave on purpose: fake_task.py plays them.
#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <map>
#include <regex>
#include <sstream>
#include <thread>

#include "core/error.h"
#include "distributed/cluster_view.h"
#include "distributed/grpc/rpc_server.h"
#include "tests/support/child_process.h"
#include "tests/support/eventually.h"
#include "tests/support/expect_error.h"
#include "tests/support/scratch_directory.h"

namespace leat {
namespace {

using std::chrono::seconds;
using testing::ContainsRegex;
using testing::HasSubstr;
using testing::Not;

// A port that was free a moment ago.
int free_port() {
  RpcServer probe;
  return probe.start("127.0.0.1:0");
}

class Launcher : public testing::Test {
 protected:
  // leat COMMAND CLUSTER … with fake tasks and logs in the test's folder.
  std::vector<std::string> leat(const std::string& command, std::vector<std::string> more = {},
                                const std::string& cluster = "local:ps=1,worker=2") {
    std::vector<std::string> arguments{LEAT_BIN_DIR "/leat",
                                       command,
                                       cluster,
                                       "--task-program",
                                       LEAT_TEST_DIR "/e2e/fake_task.py",
                                       "--log-dir",
                                       folder_ / "logs"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    return arguments;
  }

  static std::vector<pid_t> pids_in(const std::string& output) {
    std::vector<pid_t> out;
    const std::regex pattern("pid ([0-9]+)");
    for (std::sregex_iterator at(output.begin(), output.end(), pattern), end; at != end; ++at)
      out.push_back(std::stoi((*at)[1]));
    return out;
  }

  std::string read(const std::string& name) const {
    std::ifstream file(folder_ / name);
    return {std::istreambuf_iterator<char>(file), {}};
  }

  const ScratchDirectory folder_;
};

TEST_F(Launcher, PrintsATableWhenReadyAndEndsAllOnSigterm) {
  ChildProcess up(leat("up"));
  const std::string output = up.wait_for("Ctrl-C ends it");
  EXPECT_THAT(output, HasSubstr("task                address"));
  EXPECT_TRUE(std::regex_search(
      output,
      std::regex(
          "/job:worker/task:1  127\\.0\\.0\\.1:[1-9][0-9]* +[0-9]+ +ready +[0-9.]+s  2 cores")))
      << output;
  EXPECT_TRUE(std::regex_search(output, std::regex("\\[ps:0\\] ps:0 pid [0-9]+"))) << output;
  const std::vector<pid_t> pids = pids_in(output);
  ASSERT_EQ(pids.size(), 3u);
  up.send_signal(SIGTERM);
  EXPECT_EQ(up.wait(), 0);
  expect_gone(pids);
  EXPECT_THAT(read("logs/worker-1.log"), HasSubstr("worker:1 pid"));
  EXPECT_THAT(read("logs/cluster.json"), Not(HasSubstr(":0\"")));  // the ports that were bound
}

// 'T' while it is stopped.
char state_of(pid_t pid) {
  std::ifstream file(concat("/proc/", pid, "/stat"));
  std::string text{std::istreambuf_iterator<char>(file), {}};
  const size_t end = text.rfind(") ");
  return end == std::string::npos ? '?' : text[end + 2];
}

TEST_F(Launcher, StopsASlowTaskAndContinuesIt) {
  ChildProcess up(leat("up", {"--slow", "worker:1=10"}));
  const std::string output = up.wait_for("Ctrl-C ends it");
  std::map<std::string, pid_t> pids;
  const std::regex line("\\[(ps|worker):([0-9])\\] (?:ps|worker):[0-9] pid ([0-9]+)");
  for (std::sregex_iterator at(output.begin(), output.end(), line), end; at != end; ++at)
    pids[concat((*at)[1].str(), (*at)[2].str())] = std::stoi((*at)[3]);
  ASSERT_EQ(pids.size(), 3u) << output;
  for (int turn = 0; turn < 3; ++turn) {
    EXPECT_TRUE(eventually([&] { return state_of(pids["worker1"]) == 'T'; }));
    EXPECT_TRUE(eventually([&] { return state_of(pids["worker1"]) != 'T'; }));
    EXPECT_NE(state_of(pids["worker0"]), 'T');
    EXPECT_NE(state_of(pids["ps0"]), 'T');
  }
  up.send_signal(SIGTERM);
  EXPECT_EQ(up.wait(), 0);
  for (const auto& [task, pid] : pids) expect_gone({pid});
}

TEST_F(Launcher, SaysWhatIsWrongWithASlowTask) {
  for (const char* text :
       {"worker", "worker:1", "worker:1=1", "worker:x=2", ":1=2", "worker:1=101"}) {
    ChildProcess up(leat("up", {"--slow", text}));
    EXPECT_EQ(up.wait(), 2) << text;
    EXPECT_THAT(up.output(), HasSubstr(concat("--slow \"", text,
                                              "\" must be JOB:TASK=FACTOR with a factor above 1")));
  }
  ChildProcess up(leat("up", {"--slow", "worker:2=10"}));
  EXPECT_EQ(up.wait(), 2);
  EXPECT_THAT(up.output(), HasSubstr("--slow: the cluster has no /job:worker/task:2"));
}

// Otherwise they would give up before their launcher does.
TEST_F(Launcher, PassesTheStartTimeoutToTasks) {
  ChildProcess up(leat("up", {"--start-timeout", "300"}));
  for (const pid_t pid : pids_in(up.wait_for("Ctrl-C ends it"))) {
    std::ifstream file(concat("/proc/", pid, "/cmdline"));
    std::string arguments{std::istreambuf_iterator<char>(file), {}};
    std::replace(arguments.begin(), arguments.end(), '\0', ' ');
    EXPECT_THAT(arguments, HasSubstr("--start-timeout 300"));
  }
  up.send_signal(SIGTERM);
  EXPECT_EQ(up.wait(), 0);
}

// A file that can be read only once, as with `leat up <(generate)`.
TEST_F(Launcher, ReadsTheClusterFromAPipe) {
  const std::string pipe = folder_ / "pipe";
  ASSERT_EQ(mkfifo(pipe.c_str(), 0600), 0);
  ChildProcess up({LEAT_BIN_DIR "/leat", "up", pipe, "--log-dir", folder_ / "logs"});
  std::ofstream(pipe) << R"({"ps": ["127.0.0.1:0"], "worker": ["127.0.0.1:0"]})";
  up.wait_for("Ctrl-C ends it");
  up.send_signal(SIGTERM);
  EXPECT_EQ(up.wait(), 0);
}

// A descendant that left its group keeps the pipe open.
TEST_F(Launcher, PrintsAnUnfinishedLastLine) {
  ChildProcess run(leat("run",
                        {"--", "/bin/sh", "-c", "setsid sleep 5 & printf unfinished; exit 3"},
                        "local:ps=1,worker=1"));
  EXPECT_EQ(run.wait(), 3);
  EXPECT_THAT(run.output(), HasSubstr("[worker:0] unfinished"));
}

TEST_F(Launcher, CtrlCEndsAll) {
  ChildProcess up(leat("up"));
  const std::vector<pid_t> pids = pids_in(up.wait_for("Ctrl-C ends it"));
  up.send_signal(SIGINT);
  EXPECT_EQ(up.wait(), 0);
  expect_gone(pids);
}

TEST_F(Launcher, KilledLauncherLeavesNothingBehind) {
  ChildProcess up(leat("up"));
  const std::vector<pid_t> pids = pids_in(up.wait_for("Ctrl-C ends it"));
  up.send_signal(SIGKILL);
  EXPECT_EQ(up.wait(), 128 + SIGKILL);
  expect_gone(pids);
}

TEST_F(Launcher, KillsAStubbornTaskAfterTheGracePeriod) {
  ChildProcess up(leat("up", {"--grace", "0.2"}), {{"FAKE_worker_0", "stubborn"}});
  const std::vector<pid_t> pids = pids_in(up.wait_for("Ctrl-C ends it"));
  up.send_signal(SIGTERM);
  EXPECT_EQ(up.wait(), 0);
  EXPECT_THAT(up.output(), HasSubstr("[worker:0] did not end within 0.2 s of SIGTERM"));
  expect_gone(pids);
}

TEST_F(Launcher, SecondSignalKillsAtOnce) {
  ChildProcess up(leat("up", {"--grace", "3600"}), {{"FAKE_worker_0", "stubborn"}});
  const std::vector<pid_t> pids = pids_in(up.wait_for("Ctrl-C ends it"));
  up.send_signal(SIGINT);
  up.wait_for("send it again to kill at once");
  up.send_signal(SIGINT);
  EXPECT_EQ(up.wait(), 0);
  expect_gone(pids);
}

TEST_F(Launcher, ChildrenOfATaskEndWithIt) {
  ChildProcess up(leat("up", {"--grace", "0.2"}), {{"FAKE_ps_0", "child"}});
  const std::vector<pid_t> pids = pids_in(up.wait_for("Ctrl-C ends it"));
  ASSERT_EQ(pids.size(), 4u);
  up.send_signal(SIGTERM);
  EXPECT_EQ(up.wait(), 0);
  expect_gone(pids);
}

TEST_F(Launcher, NamesATaskThatCannotStartAndTheReason) {
  ChildProcess up(leat("up"), {{"FAKE_worker_1",
                                "unable cannot listen on 127.0.0.1:2222: Address already in use"}});
  EXPECT_EQ(up.wait(), 3);  // its own status
  EXPECT_THAT(up.output(), HasSubstr("/job:worker/task:1 ended while the cluster was starting"));
  EXPECT_TRUE(std::regex_search(
      up.output(), std::regex("/job:worker/task:1 .* failed .* Address already in use")))
      << up.output();
  EXPECT_THAT(up.output(), HasSubstr("Stopped because of it: [ps:0], [worker:0]"));
}

// A task that waits for the others' addresses gets no signal; it only sees that its launcher hung
// up.
TEST_F(Launcher, WaitingTasksEndWhenTheStartFails) {
  ChildProcess up(leat("up", {"--grace", "3600"}),
                  {{"FAKE_worker_1", "unable no luck"}, {"FAKE_ps_0", "stubborn"}});
  EXPECT_EQ(up.wait(), 3);
}

TEST_F(Launcher, ListsMissingTasksAfterTheStartTimeout) {
  ChildProcess up(leat("up", {"--start-timeout", "2"}), {{"FAKE_worker_1", "deaf"}});
  EXPECT_EQ(up.wait(), 1);
  EXPECT_THAT(up.output(), HasSubstr("not ready within 2 s"));
  EXPECT_TRUE(std::regex_search(up.output(),
                                std::regex("/job:worker/task:1 .* waiting .* for /job:ps/task:0")))
      << up.output();
  expect_gone(pids_in(up.output()));
}

TEST_F(Launcher, TableListsAMissingRemoteTask) {
  std::ofstream(folder_ / "cluster.json")
      << R"({"cluster": {"ps": ["192.0.2.1:2222"], "worker": ["127.0.0.1:47999"]}})";
  ChildProcess up(leat("up", {"--start-timeout", "2"}, folder_ / "cluster.json"),
                  {{"FAKE_worker_0", "deaf"}});
  EXPECT_EQ(up.wait(), 1);
  EXPECT_TRUE(std::regex_search(
      up.output(), std::regex("/job:ps/task:0 +192\\.0\\.2\\.1:2222 +- +no "
                              "answer .*connection refused: is `leat up` running on 192.0.2.1")))
      << up.output();
}

TEST_F(Launcher, NamesADeadTaskWithItsLastLines) {
  const std::string trigger = folder_ / "trigger";
  ChildProcess up(leat("up"), {{"FAKE_ps_0", "exit 9"}, {"FAKE_TRIGGER", trigger}});
  const std::vector<pid_t> pids = pids_in(up.wait_for("Ctrl-C ends it"));
  std::ofstream{trigger};
  EXPECT_EQ(up.wait(), 9);
  EXPECT_THAT(up.output(), HasSubstr("leat: [ps:0] task /job:ps/task:0 (127.0.0.1:"));
  EXPECT_THAT(up.output(), HasSubstr("exit status 9"));
  EXPECT_THAT(up.output(), HasSubstr("        the end of the world\n"));
  expect_gone(pids);
}

TEST_F(Launcher, NamesAKilledTaskWithTheSignal) {
  ChildProcess up(leat("up"));
  const std::string output = up.wait_for("Ctrl-C ends it");
  std::smatch found;
  ASSERT_TRUE(std::regex_search(output, found, std::regex("worker:1 pid ([0-9]+)")));
  kill(std::stoi(found[1]), SIGKILL);
  EXPECT_EQ(up.wait(), 128 + SIGKILL);
  EXPECT_THAT(up.output(), HasSubstr("leat: [worker:1] task /job:worker/task:1"));
  EXPECT_THAT(up.output(), HasSubstr("killed by signal 9 (SIGKILL)"));
  expect_gone(pids_in(output));
}

TEST_F(Launcher, RunGivesEveryWorkerACopyAndItsTfConfig) {
  ChildProcess run(leat("run", {"--", "sh", "-c", "echo \"I am $TF_CONFIG\""}));
  EXPECT_EQ(run.wait(), 0);
  for (const char* index : {"0", "1"}) {
    EXPECT_TRUE(std::regex_search(
        run.output(),
        std::regex(
            std::string("\\[worker:") + index +
            R"(\] I am \{"cluster":\{"ps":\["127.0.0.1:[1-9][0-9]*"\],"worker":\[.*"task":\{"index":)" +
            index + ",\"type\":\"worker\"")))
        << run.output();
  }
  EXPECT_THAT(run.output(), Not(HasSubstr("[ps:0] I am")));
  EXPECT_THAT(read("logs/worker-1.program.log"), HasSubstr("I am {"));
  expect_gone(pids_in(run.output()));
}

TEST_F(Launcher, ReportsAnEmbeddedProgramThatDoesNotJoin) {
  ChildProcess ends(leat("run", {"--embed", "--", "true"}));
  EXPECT_EQ(ends.wait(), 1);
  EXPECT_THAT(ends.output(), HasSubstr("without joining the cluster"));
  EXPECT_THAT(ends.output(), HasSubstr("leat::join_cluster()"));
  ChildProcess stays(leat("run", {"--embed", "--start-timeout", "1", "--", "sleep", "3600"}));
  EXPECT_EQ(stays.wait(), 1);
  EXPECT_TRUE(std::regex_search(
      stays.output(), std::regex("/job:worker/task:1 .* starting .* has not called leat::join_")))
      << stays.output();
  expect_gone(pids_in(ends.output()));
  expect_gone(pids_in(stays.output()));
}

TEST_F(Launcher, FailedEmbeddedProgramIsTheRootCause) {
  ChildProcess run(leat("run", {"--embed", "--", "sh", "-c", "echo no luck; exit 7"}));
  EXPECT_EQ(run.wait(), 7);
  EXPECT_TRUE(std::regex_search(
      run.output(), std::regex("program [^\n]*sh, which is task /job:worker/task:[01] ")))
      << run.output();
  EXPECT_THAT(run.output(), HasSubstr("        no luck\n"));
}

// A program may catch its error, leave its session (so that it only serves the others: "done"), and
// return its own status when all are done. It may be done before the others are ready.
TEST_F(Launcher, DoneEmbeddedProgramKeepsItsStatus) {
  for (const char* ps : {"ready", "late"}) {
    ChildProcess run(leat("run", {"--embed", "--", LEAT_TEST_DIR "/e2e/fake_task.py"}),
                     {{"FAKE_ps_0", ps},
                      {"FAKE_worker_0", "done 0"},
                      {"FAKE_worker_1", "done 7"},
                      {"FAKE_TRIGGER", folder_ / "trigger"}});
    run.wait_for("[worker:0] done");
    run.wait_for("[worker:1] done");
    std::ofstream{folder_ / "trigger"};
    EXPECT_EQ(run.wait(), 7);
    EXPECT_TRUE(std::regex_search(
        run.output(), std::regex("\\[worker:1\\] program [^\n]*, which is task /job:worker/task:1 "
                                 "[^\n]*exit status 7")))
        << run.output();
    EXPECT_THAT(run.output(), HasSubstr("        what had gone wrong before\n"));
    expect_gone(pids_in(run.output()));
    std::filesystem::remove(folder_ / "trigger");
  }
}

TEST_F(Launcher, RunEndsWithTheFirstFailuresStatus) {
  ChildProcess run(leat(
      "run",
      {"--", "sh", "-c",
       "case $TF_CONFIG in *'\"index\":1'*) echo no luck >&2; exit 7;; esac; exec sleep 600"}));
  EXPECT_EQ(run.wait(), 7);
  EXPECT_TRUE(std::regex_search(
      run.output(),
      std::regex("leat: \\[worker:1\\] program [^ ]*sh \\(pid [0-9]+\\): exit status 7")))
      << run.output();
  EXPECT_THAT(run.output(), HasSubstr("        no luck\n"));
  expect_gone(pids_in(run.output()));
}

TEST_F(Launcher, RunEndsWith128PlusTheSignal) {
  ChildProcess run(
      leat("run", {"--", "sh", "-c",
                   "case $TF_CONFIG in *'\"index\":0'*) kill -SEGV $$;; esac; exec sleep 600"}));
  EXPECT_EQ(run.wait(), 128 + SIGSEGV);
  EXPECT_THAT(run.output(), HasSubstr("killed by signal 11 (SIGSEGV)"));
}

TEST_F(Launcher, DeadTaskIsTheCauseAndProgramsMayStillPrint) {
  const std::string trigger = folder_ / "trigger";
  // The programs fail on their own, a moment after the task.
  ChildProcess run(
      leat("run", {"--", "sh", "-c",
                   "echo started; while [ ! -e \"$FAKE_TRIGGER\" ]; do sleep 0.05; done; "
                   "sleep 0.5; echo lost ps; exit 1"}),
      {{"FAKE_ps_0", "exit 9"}, {"FAKE_TRIGGER", trigger}});
  run.wait_for("[worker:1] started");
  std::ofstream{trigger};
  EXPECT_EQ(run.wait(), 9);
  EXPECT_THAT(run.output(), HasSubstr("leat: [ps:0] task /job:ps/task:0"));
  EXPECT_TRUE(std::regex_search(
      run.output(), std::regex("later \\[worker:0\\] program .* exit status 1: lost ps")))
      << run.output();
}

TEST_F(Launcher, RunReturnsTheSignalThatStoppedIt) {
  ChildProcess run(leat("run", {"--", "sleep", "600"}));
  run.wait_for("/job:worker/task:1");
  run.send_signal(SIGTERM);
  EXPECT_EQ(run.wait(), 128 + SIGTERM);
  expect_gone(pids_in(run.output()));
}

// It writes faster than the launcher reads; the launcher still sees signals and the others' output.
TEST_F(Launcher, FloodingProgramBlocksNothingElse) {
  const auto flood = [&](const std::string& program) {
    std::vector<std::string> arguments{"/bin/sh", "-c", "exec \"$@\" >/dev/null", "sh"};
    for (std::string& each : leat("run", {"--grace", "1", "--", "/bin/sh", "-c", program}))
      arguments.push_back(std::move(each));
    return arguments;
  };
  const std::string log = folder_ / "logs/worker-0.program.log";
  ChildProcess stopped(flood("exec timeout 30 yes"));
  ASSERT_TRUE(eventually([&] {
    std::error_code none_yet;
    const auto size = std::filesystem::file_size(log, none_yet);
    return !none_yet && size > 1 << 20;
  }));
  stopped.send_signal(SIGTERM);
  EXPECT_EQ(stopped.wait(seconds(15)), 128 + SIGTERM);

  ChildProcess failed(
      flood("case $TF_CONFIG in *'\"index\":1'*) sleep 0.5; exit 3;; esac; exec timeout 30 yes"));
  EXPECT_EQ(failed.wait(seconds(15)), 3);
}

TEST_F(Launcher, ReportsAFullDiskOnceWithoutEmptyLogs) {
  std::filesystem::create_directory(folder_ / "logs");
  for (const char* name : {"worker-0.program.log", "worker-1.program.log"})
    std::filesystem::create_symlink("/dev/full", folder_ / concat("logs/", name));
  ChildProcess run(leat("run", {"--", "/bin/sh", "-c", "echo no luck; sleep 0.2; exit 7"}));
  EXPECT_EQ(run.wait(), 7);
  const std::string output = run.output();
  const std::string told = "cannot write the log " + folder_.path();
  EXPECT_THAT(output, HasSubstr(told));
  EXPECT_EQ(output.find(told), output.rfind(told));
  EXPECT_THAT(output, HasSubstr("could not be written: No space left on device"));
  EXPECT_THAT(output, Not(HasSubstr("All of it")));
}

// ulimit -f, which batch systems set.
TEST_F(Launcher, ReportsALogThatMayNotGrowAndEndsNoTask) {
  std::vector<std::string> arguments{"/bin/sh", "-c", "ulimit -f 1; exec \"$@\"", "sh"};
  const std::string program = "for i in $(seq 500); do echo 0123456789; done";
  for (std::string& each : leat("run", {"--", "/bin/sh", "-c", program}))
    arguments.push_back(std::move(each));
  ChildProcess run(arguments);
  EXPECT_EQ(run.wait(), 0);
  EXPECT_THAT(run.output(), HasSubstr("cannot write the log " + folder_.path()));
  EXPECT_THAT(run.output(), HasSubstr("File too large"));
}

// Programs do not inherit the signals that the launcher ignores.
TEST_F(Launcher, ProgramsStartWithDefaultSignals) {
  const std::string program = "grep SigIgn /proc/self/status";
  ChildProcess run(leat("run", {"--", "/bin/sh", "-c", program}));
  EXPECT_EQ(run.wait(), 0);
  // Signal 32 is the C library's own.
  EXPECT_THAT(run.output(), ContainsRegex("SigIgn:\t[0-9a-f]{8}[08]0{7}"));
}

TEST_F(Launcher, LauncherRespectsNohup) {
  std::vector<std::string> arguments{"/bin/sh", "-c", "trap '' HUP; exec \"$@\"", "sh"};
  for (std::string& each : leat("up")) arguments.push_back(std::move(each));
  ChildProcess up(arguments);
  up.wait_for("ready; programs connect");
  up.send_signal(SIGHUP);
  up.send_signal(SIGTERM);
  EXPECT_EQ(up.wait(), 0);
  EXPECT_THAT(up.output(), Not(HasSubstr("SIGHUP")));
}

TEST_F(Launcher, TaskContinuesWhenNobodyReadsItsOutput) {
  const std::string address = "127.0.0.1:" + std::to_string(free_port());
  std::ofstream(folder_ / "one.json") << R"({"cluster": {"ps": [")" + address + "\"]}}";
  const std::string command = "(echo pid $$ >&2; sleep 0.5; " LEAT_BIN_DIR "/leat task " +
                              (folder_ / "one.json") +
                              " --job ps --task 0; echo status $? >&2) | true";
  ChildProcess task({"/bin/sh", "-c", command});
  const auto answers = [&] { return error_of([&] { view_cluster("grpc://" + address); }).is_ok(); };
  EXPECT_TRUE(eventually(answers, seconds(20))) << task.output();
  kill(-task.pid(), SIGTERM);
  task.wait();
}

TEST_F(Launcher, TaskEndsCleanlyWhenItsTerminalCloses) {
  std::ofstream(folder_ / "one.json")
      << R"({"cluster": {"ps": ["127.0.0.1:)" + std::to_string(free_port()) + "\"]}}";
  ChildProcess task({LEAT_BIN_DIR "/leat", "task", folder_ / "one.json", "--job", "ps"});
  task.wait_for("ready");
  task.send_signal(SIGHUP);
  EXPECT_EQ(task.wait(), 0);
}

TEST_F(Launcher, NamesAMissingTemporaryFolder) {
  ChildProcess run({LEAT_BIN_DIR "/leat", "run", "local:ps=1,worker=1", "--", "/bin/true"},
                   {{"TMPDIR", "/no/such/folder"}});
  EXPECT_EQ(run.wait(), 1);
  EXPECT_THAT(run.output(), HasSubstr("/no/such/folder"));
  EXPECT_THAT(run.output(), HasSubstr("TMPDIR"));
  EXPECT_THAT(run.output(), HasSubstr("--log-dir"));
}

TEST_F(Launcher, FailsIfTheClusterFileCannotBeWritten) {
  std::filesystem::create_directories(folder_ / "logs/cluster.json");
  ChildProcess up(leat("up"));
  EXPECT_EQ(up.wait(), 1);
  EXPECT_THAT(up.output(), ContainsRegex("logs/cluster\\.json.*: Is a directory"));
  // The file that every task reads.
  std::filesystem::remove(folder_ / "logs/cluster.asked.json");
  std::filesystem::create_directory(folder_ / "logs/cluster.asked.json");
  ChildProcess run(leat("run", {"--", "true"}));
  EXPECT_EQ(run.wait(), 1);
  EXPECT_THAT(run.output(), ContainsRegex("logs/cluster\\.asked\\.json.*: Is a directory"));
}

TEST_F(Launcher, MissingProgramStartsNothing) {
  ChildProcess run(leat("run", {"--", "./no_such_program"}));
  EXPECT_EQ(run.wait(), 127);
  EXPECT_THAT(run.output(), HasSubstr("cannot run ./no_such_program: there is no such program"));
  EXPECT_THAT(run.output(), Not(HasSubstr("starting")));
  std::ofstream(folder_ / "plain_file") << "x";
  ChildProcess plain(leat("run", {"--", folder_ / "plain_file"}));
  EXPECT_EQ(plain.wait(), 126);
  EXPECT_THAT(plain.output(), HasSubstr("not executable"));
  ChildProcess folder(leat("run", {"--", folder_.path()}));
  EXPECT_EQ(folder.wait(), 126);
  EXPECT_THAT(folder.output(), HasSubstr("it is a directory"));
  std::ofstream(folder_ / "script") << "#! /no/such/shell -e\necho hello\n";
  std::filesystem::permissions(folder_ / "script", std::filesystem::perms::owner_all);
  ChildProcess script(leat("run", {"--", folder_ / "script"}));
  EXPECT_EQ(script.wait(), 126);
  EXPECT_THAT(script.output(), HasSubstr("asks for \"/no/such/shell\", which does not exist"));
  EXPECT_THAT(script.output(), Not(HasSubstr("starting")));
}

TEST_F(Launcher, TaskThatReadsAPipeStillReceivesSignals) {
  const std::string pipe = folder_ / "pipe";
  ASSERT_EQ(mkfifo(pipe.c_str(), 0600), 0);
  ChildProcess task({LEAT_BIN_DIR "/leat", "task", pipe, "--job", "ps", "--task", "0"});
  int writer = -1;  // opens as soon as the task opens the other end; nothing is ever written
  ASSERT_TRUE(
      eventually([&] { return (writer = open(pipe.c_str(), O_WRONLY | O_NONBLOCK)) >= 0; }));
  task.send_signal(SIGTERM);
  EXPECT_EQ(task.wait(seconds(10)), 128 + SIGTERM);
  close(writer);
}

TEST_F(Launcher, RejectsATaskWithTwoNames) {
  const ChildProcess::Environment environment{
      {"TF_CONFIG", R"({"cluster": {"ps": ["127.0.0.1:0"]}, "task": {"type": "ps", "index": 0}})"}};
  ChildProcess task({LEAT_BIN_DIR "/leat", "task", "--job", "worker", "--task", "1"}, environment);
  EXPECT_EQ(task.wait(), 2);
  EXPECT_THAT(task.output(), HasSubstr("TF_CONFIG"));
  EXPECT_THAT(task.output(), HasSubstr("/job:ps/task:0"));
  EXPECT_THAT(task.output(), HasSubstr("/job:worker/task:1"));
}

TEST_F(Launcher, DoctorMeasuresTheLinkOfTwoWorkers) {
  ChildProcess up({LEAT_BIN_DIR "/leat", "up", "local:ps=1,worker=2"});
  const std::string output = up.wait_for("Ctrl-C ends it");
  const size_t at = output.find("grpc://");
  ChildProcess doctor(
      {LEAT_BIN_DIR "/leat", "doctor", "--speed", output.substr(at, output.find(';', at) - at)});
  EXPECT_EQ(doctor.wait(), 0) << doctor.output();
  EXPECT_THAT(doctor.output(),
              ContainsRegex("speed: a trip between /job:worker/task:0 and /job:worker/task:1 takes "
                            "[0-9]+ µs; each sends and receives [1-9][0-9]* MB/s"));
  up.send_signal(SIGTERM);
  EXPECT_EQ(up.wait(), 0);
}

TEST_F(Launcher, UserMistakesReturnStatus2) {
  const auto status = [](std::vector<std::string> arguments, const std::string& says) {
    arguments.insert(arguments.begin(), LEAT_BIN_DIR "/leat");
    ChildProcess program(arguments);
    const int out = program.wait();
    EXPECT_THAT(program.output(), HasSubstr(says));
    return out;
  };
  EXPECT_EQ(status({"up"}, "cluster"), 2);
  EXPECT_EQ(status({"up", "no_such_cluster.json"}, "no_such_cluster.json"), 2);
  EXPECT_EQ(status({"up", "local:ps=0"}, "local:ps=1,worker=2"), 2);
  EXPECT_EQ(status({"up", "local:ps=1", "--grace", "long"}, "--grace"), 2);
  EXPECT_EQ(status({"run", "local:ps=1"}, "program"), 2);
  EXPECT_EQ(status({"run", "local:ps=1", "--", "true"}, "no worker and no chief"), 2);
  EXPECT_EQ(status({"run", "local:ps=1,wroker=2", "--", "true"}, "did you mean 'worker'?"), 2);
  EXPECT_EQ(status({"dance"}, "dance"), 2);
  EXPECT_EQ(status({"doctor", "--speed"}, "--speed requires target"), 2);
  EXPECT_EQ(status({"up", "--help"}, "Exit status"), 0);
  std::ofstream(folder_ / "far.json") << R"({"cluster": {"ps": ["192.0.2.1:2222"]}})";
  EXPECT_EQ(status({"up", folder_ / "far.json"}, "belongs on this host"), 2);
}

}  // namespace
}  // namespace leat
