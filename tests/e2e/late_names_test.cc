// Hosts that get their names after the processes have started: each process sees a hosts file of
// the test, which changes while it waits.
#include <arpa/inet.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <signal.h>
#include <sys/socket.h>
#include <unistd.h>

#include <fstream>
#include <regex>

#include "tests/support/child_process.h"
#include "tests/support/scratch_directory.h"

namespace leat {
namespace {

using testing::HasSubstr;

// A port of 127.0.0.1 that was free a moment ago.
int free_port() {
  const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t length = sizeof address;
  EXPECT_EQ(bind(fd, reinterpret_cast<sockaddr*>(&address), length), 0);
  EXPECT_EQ(getsockname(fd, reinterpret_cast<sockaddr*>(&address), &length), 0);
  close(fd);
  return ntohs(address.sin_port);
}

class LateNames : public testing::Test {
 protected:
  void SetUp() override {
    std::ofstream(hosts()) << "127.0.0.1 localhost\n";
    for (const char* flags : {"-m", "-rm"}) {
      unshare_ = {"unshare", flags, "sh", "-c", R"(mount --bind "$0" /etc/hosts && exec "$@")",
                  hosts()};
      ChildProcess attempt(with_own_names({"true"}));
      if (attempt.wait() == 0) return;
    }
    GTEST_SKIP() << "unshare may not make a mount namespace here";
  }

  std::string hosts() const { return folder_ / "hosts"; }
  void name_host(const std::string& name) const {
    std::ofstream(hosts(), std::ios::app) << "127.0.0.1 " << name << "\n";
  }
  std::string write_cluster(const std::string& text) const {
    std::ofstream(folder_ / "cluster.json") << text;
    return folder_ / "cluster.json";
  }
  // The command in a mount namespace of its own, with our hosts file for /etc/hosts.
  std::vector<std::string> with_own_names(const std::vector<std::string>& command) const {
    std::vector<std::string> out = unshare_;
    out.insert(out.end(), command.begin(), command.end());
    return out;
  }
  std::vector<std::string> leat(const std::vector<std::string>& arguments) const {
    std::vector<std::string> command{LEAT_BIN_DIR "/leat"};
    command.insert(command.end(), arguments.begin(), arguments.end());
    return with_own_names(command);
  }

  const ScratchDirectory folder_;
  std::vector<std::string> unshare_;
};

TEST_F(LateNames, LauncherRecognisesItsOwnTaskLate) {
  const std::string cluster =
      write_cluster(R"({"cluster": {"ps": ["late.test:0"], "worker": ["127.0.0.1:0"]}})");
  ChildProcess up(leat({"up", cluster, "--log-dir", folder_ / "logs"}));
  EXPECT_TRUE(std::regex_search(
      up.wait_for("late.test cannot be resolved"),
      std::regex("/job:ps/task:0 +late\\.test:0 +- +unresolved +[0-9.]+s  late\\.test cannot")))
      << up.output();
  name_host("late.test");
  const std::string output = up.wait_for("Ctrl-C ends it");
  EXPECT_TRUE(
      std::regex_search(output, std::regex("/job:ps/task:0 +late\\.test:[0-9]+ +[0-9]+ +ready")))
      << output;
  up.send_signal(SIGTERM);
  EXPECT_EQ(up.wait(), 0);
}

TEST_F(LateNames, ReportsANameThatNeverResolves) {
  const std::string cluster = write_cluster(R"({"cluster": {"ps": ["late.test:2222"]}})");
  ChildProcess up(leat({"up", cluster, "--log-dir", folder_ / "logs", "--start-timeout", "1"}));
  EXPECT_EQ(up.wait(), 1);
  EXPECT_THAT(up.output(), HasSubstr("not ready within 1 s"));
  EXPECT_THAT(up.output(), HasSubstr("late.test cannot be resolved"));
}

// The resolver says that no host has this name: a typo.
TEST_F(LateNames, UnknownNameFailsTheStartSoon) {
  const std::string cluster =
      write_cluster(R"({"cluster": {"ps": ["127.0.0.1:0"], "worker": ["slip.test:2222"]}})");
  const auto files_only = [&](std::vector<std::string> command) {
    std::ofstream(folder_ / "nsswitch.conf") << "hosts: files\n";
    const std::vector<std::string> mount{"sh", "-c",
                                         R"(mount --bind "$0" /etc/nsswitch.conf && exec "$@")",
                                         folder_ / "nsswitch.conf", LEAT_BIN_DIR "/leat"};
    command.insert(command.begin(), mount.begin(), mount.end());
    return with_own_names(command);
  };
  const auto start = std::chrono::steady_clock::now();
  ChildProcess up(files_only({"up", cluster, "--log-dir", folder_ / "logs"}));
  EXPECT_EQ(up.wait(), 1);
  EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(30));
  EXPECT_THAT(up.output(),
              HasSubstr("the host name slip.test of /job:worker/task:0 has no address"));
  EXPECT_THAT(up.output(), HasSubstr("--wait-for-names"));

  ChildProcess patient(files_only(
      {"up", cluster, "--wait-for-names", "--start-timeout", "7", "--log-dir", folder_ / "logs"}));
  EXPECT_EQ(patient.wait(), 1);
  EXPECT_THAT(patient.output(), HasSubstr("not ready within 7 s"));
}

TEST_F(LateNames, CtrlCEndsTheWait) {
  const std::string cluster = write_cluster(R"({"cluster": {"ps": ["late.test:2222"]}})");
  ChildProcess up(leat({"up", cluster, "--log-dir", folder_ / "logs"}));
  up.wait_for("late.test cannot be resolved");
  up.send_signal(SIGINT);
  EXPECT_EQ(up.wait(), 0);
}

// The ps waits for its own name, the worker for the ps's.
TEST_F(LateNames, TasksWaitForTheirOwnNameAndEachOthers) {
  const std::string cluster =
      write_cluster(R"({"cluster": {"ps": ["late.test:)" + std::to_string(free_port()) +
                    R"("], "worker": ["127.0.0.1:)" + std::to_string(free_port()) + R"("]}})");
  ChildProcess worker(leat({"task", cluster, "--job", "worker", "--task", "0"}));
  ChildProcess ps(leat({"task", cluster, "--job", "ps", "--task", "0"}));
  ps.wait_for("late.test cannot be resolved yet; waiting");
  EXPECT_TRUE(std::regex_search(
      worker.wait_for("cannot be resolved"),
      std::regex("waiting for\n +/job:ps/task:0[^\n]*late\\.test[^\n]*cannot be resolved")))
      << worker.output();
  name_host("late.test");
  worker.wait_for("/job:worker/task:0 ready");
  ps.wait_for("/job:ps/task:0 ready");
  for (ChildProcess* task : {&worker, &ps}) {
    task->send_signal(SIGTERM);
    EXPECT_EQ(task->wait(), 0);
  }
}

}  // namespace
}  // namespace leat
