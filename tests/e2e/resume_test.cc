// A training that loses every process in the middle of a step resumes from its last checkpoint and
// follows the loss curve of an undisturbed one.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>

#include <fstream>
#include <map>

#include "tests/support/child_process.h"
#include "tests/support/eventually.h"
#include "tests/support/scratch_directory.h"

namespace leat {
namespace {

using testing::HasSubstr;

std::vector<std::string> training(const std::string& directory, const std::string& losses) {
  return {LEAT_BIN_DIR "/leat",
          "run",
          "local:ps=2,worker=2",
          "--log-dir",
          directory + "/logs",
          "--",
          LEAT_BIN_DIR "/examples/mnist",
          "--strategy",
          "parameter_server:staleness=0",
          "--optimizer",
          "momentum",
          "--epochs",
          "10",
          "--batch",
          "50",
          "--directory",
          directory,
          "--checkpoint-steps",
          "40",
          "--losses",
          losses};
}

// Step → loss; if a step ran twice, its last loss. Lines that were cut off do not count.
std::map<int64_t, float> losses_of(const std::string& path) {
  std::map<int64_t, float> out;
  std::ifstream file(path);
  for (std::string line; std::getline(file, line) && !file.eof();) {
    int64_t step = 0;
    float loss = 0;
    if (std::sscanf(line.c_str(), "%ld %f", &step, &loss) == 2) out[step] = loss;
  }
  return out;
}

std::vector<pid_t> children_of(pid_t pid) {
  std::ifstream file("/proc/" + std::to_string(pid) + "/task/" + std::to_string(pid) + "/children");
  std::vector<pid_t> out;
  for (pid_t child = 0; file >> child;) out.push_back(child);
  return out;
}

TEST(Resume, KillingEveryProcessChangesNothing) {
  const ScratchDirectory directory;
  const std::string calm = directory / "calm", disturbed = directory / "disturbed";
  ChildProcess undisturbed(training(calm, directory / "calm_losses"));
  ASSERT_EQ(undisturbed.wait(std::chrono::seconds(120)), 0) << undisturbed.output();
  const std::map<int64_t, float> expected = losses_of(directory / "calm_losses");
  ASSERT_EQ(expected.size(), 800u);

  for (const size_t until : {100, 300}) {
    ChildProcess killed(training(disturbed, directory / "losses"));
    ASSERT_TRUE(eventually([&] { return losses_of(directory / "losses").size() >= until; }))
        << killed.output();
    std::vector<pid_t> pids = children_of(killed.pid());
    ASSERT_GE(pids.size(), 5u) << "2 ps, 2 workers and a program";
    pids.push_back(killed.pid());
    for (const pid_t pid : pids) ASSERT_EQ(kill(pid, SIGKILL), 0);
    for (const pid_t pid : pids) EXPECT_TRUE(wait_until_gone(pid));
  }
  ChildProcess resumed(training(disturbed, directory / "losses"));
  ASSERT_EQ(resumed.wait(std::chrono::seconds(120)), 0) << resumed.output();
  EXPECT_THAT(resumed.output(), HasSubstr("restored " + disturbed + "/model.ckpt-"));

  const std::map<int64_t, float> actual = losses_of(directory / "losses");
  ASSERT_EQ(actual.size(), expected.size());
  for (const auto& [step, loss] : expected)
    ASSERT_FLOAT_EQ(actual.at(step), loss) << "step " << step;
}

}  // namespace
}  // namespace leat
