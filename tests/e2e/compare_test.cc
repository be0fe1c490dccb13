// `leat compare` as users call it: real trainings, results in a folder, and errors.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <regex>

#include "tests/support/child_process.h"
#include "tests/support/eventually.h"
#include "tests/support/sanitizers.h"
#include "tests/support/scratch_directory.h"

namespace leat {
namespace {

using testing::ContainsRegex;
using testing::HasSubstr;
using testing::Not;

#ifdef LEAT_UNDER_SANITIZER
constexpr std::chrono::seconds limit{500};
#else
constexpr std::chrono::seconds limit{100};
#endif

class Compare : public testing::Test {
 protected:
  // leat compare --out FOLDER/out …
  std::vector<std::string> compare(const std::vector<std::string>& more) const {
    std::vector<std::string> out{LEAT_BIN_DIR "/leat", "compare", "--out", folder_ / "out"};
    out.insert(out.end(), more.begin(), more.end());
    return out;
  }
  int run(const std::vector<std::string>& more) {
    ChildProcess program(compare(more));
    const int status = program.wait(limit);
    output_ = program.output();
    return status;
  }
  // A program that ignores its arguments.
  std::string script(const std::string& commands) const {
    const std::string path = folder_ / "program";
    std::ofstream(path) << "#!/bin/sh\n" << commands << "\n";
    std::filesystem::permissions(path, std::filesystem::perms::owner_all);
    return path;
  }
  std::string read(const std::string& name) const {
    std::ifstream file(folder_ / ("out/" + name), std::ios::binary);
    return {std::istreambuf_iterator<char>(file), {}};
  }

  const ScratchDirectory folder_;
  const std::string mnist_ = LEAT_BIN_DIR "/examples/mnist";
  std::string output_;
};

TEST_F(Compare, TrainsWithEachStrategyAndDrawsTheResult) {
  ASSERT_EQ(run({"--strategies", "one_device,local_sgd:steps=5", "--workers", "2", "--ps", "0",
                 "--title", "Two ways", "--", mnist_, "--epochs", "1"}),
            0)
      << output_;
  EXPECT_THAT(output_, ContainsRegex("strategy +steps +samples +seconds +samples/s +bytes/sample"));
  EXPECT_THAT(output_, ContainsRegex("one_device +[1-9][0-9]* .* 0 B +[0-9.]+"));
  EXPECT_THAT(output_, ContainsRegex("local_sgd:steps=5 +[1-9][0-9]* .* k?B +[0-9.]+"));

  const auto json = nlohmann::json::parse(read("compare.json"));
  ASSERT_EQ(json["strategies"].size(), 2u);
  const auto &alone = json["strategies"][0], &together = json["strategies"][1];
  // The same samples, on one worker or two.
  EXPECT_EQ(alone["samples"], together["samples"]);
  EXPECT_EQ(alone["steps"], 2 * together["steps"].get<int>());
  EXPECT_EQ(alone["bytes"], 0);
  // Each worker sends its variables, 400 kB, to others every 5 steps.
  EXPECT_GT(together["bytes"], 400'000.0 * together["steps"].get<int>() / 5);
  for (const auto& strategy : json["strategies"]) {
    const auto& losses = strategy["curve"]["loss"];
    EXPECT_LT(losses.back(), losses.front().get<double>() / 2);
    EXPECT_GT(strategy["seconds"], 0);
  }

  const std::string html = read("compare.html");
  EXPECT_THAT(html, HasSubstr("<h1>Two ways</h1>"));
  EXPECT_THAT(html, HasSubstr("2 workers, 0 parameter servers; mnist --epochs 1"));
  EXPECT_THAT(html, HasSubstr("<td>local_sgd:steps=5</td>"));
  EXPECT_THAT(html, HasSubstr("class=\"line c1\""));
  EXPECT_THAT(read("compare.svg"), HasSubstr("Loss against bytes"));
  EXPECT_TRUE(std::filesystem::exists(folder_ / "out/logs/one_device/worker-0.program.log"));
}

TEST_F(Compare, AFailureIsShownAndTheOthersRun) {
  EXPECT_EQ(run({"--strategies", "local_sgdd", "--strategies", "one_device", "--workers", "1",
                 "--ps", "0", "--", mnist_, "--epochs", "1"}),
            1);
  EXPECT_THAT(output_, HasSubstr("leat: local_sgdd failed: mnist --epochs 1 ended with exit status "
                                 "1; logs in " +
                                 folder_.path() + "/out/logs/local_sgdd"));
  EXPECT_THAT(output_, HasSubstr("there is no strategy 'local_sgdd'"));
  EXPECT_THAT(output_, ContainsRegex("one_device +[1-9][0-9]* "));
  EXPECT_THAT(read("compare.html"), HasSubstr("local_sgdd failed"));
}

TEST_F(Compare, AProgramWithoutATrainingIsReported) {
  EXPECT_EQ(run({"--strategies", "a", "--workers", "1", "--ps", "0", "--", "/bin/true"}), 1);
  EXPECT_THAT(output_, HasSubstr("leat: a failed: true recorded no step: it must train with a "
                                 "TrainingSession of the Training that a strategy returns"));
}

// Also records of an earlier comparison in the same folder.
TEST_F(Compare, CountsNoRecordsOfEarlierRuns) {
  std::filesystem::create_directories(folder_ / "out/records/a");
  std::ofstream(folder_ / "out/records/a/1.jsonl") << "{\"seconds\": 1, \"loss\": 1}\n";
  EXPECT_EQ(run({"--strategies", "a", "--workers", "1", "--ps", "0", "--", "/bin/true"}), 1);
  EXPECT_THAT(output_, HasSubstr("recorded no step"));
}

TEST_F(Compare, StopsAStrategyAtTheTimeout) {
  EXPECT_EQ(run({"--strategies", "a", "--workers", "1", "--ps", "0", "--timeout", "2", "--",
                 script("sleep 600")}),
            1);
  EXPECT_THAT(output_, HasSubstr("a failed: it did not end within 2 s (--timeout)"));
}

// With all that it started, whether it is asked to end (long before it would kill them) or killed.
TEST_F(Compare, EndsWithItsPrograms) {
  for (const int signal : {SIGINT, SIGKILL}) {
    const std::string started = folder_ / ("started" + std::to_string(signal));
    ChildProcess program(compare({"--strategies", "a,b", "--workers", "1", "--ps", "0", "--",
                                  script("echo $$ > " + started + ".new; mv " + started + ".new " +
                                         started + "; exec sleep 600")}));
    ASSERT_TRUE(eventually([&] { return std::filesystem::exists(started); }, limit))
        << program.output();
    pid_t pid = 0;
    std::ifstream(started) >> pid;
    program.send_signal(signal);
    EXPECT_EQ(program.wait(std::chrono::seconds(20)), 128 + signal);
    expect_gone({pid});
    EXPECT_THAT(program.output(), Not(HasSubstr("2/2")));
  }
}

TEST_F(Compare, ExplainsMistakes) {
  EXPECT_EQ(run({"--", "no_such_program"}), 127);
  EXPECT_THAT(output_, HasSubstr("leat: cannot run no_such_program: there is no such program"));
  EXPECT_EQ(run({"--strategies", "a,,b", "--", "/bin/true"}), 2);
  EXPECT_THAT(output_, HasSubstr("leat: --strategies \"a,,b\" has an empty name"));
  EXPECT_EQ(run({"--strategies", "a,b", "--strategies", "a", "--", "/bin/true"}), 2);
  EXPECT_THAT(output_, HasSubstr("leat: --strategies names a twice"));
  EXPECT_EQ(run({"--workers", "0", "--", "/bin/true"}), 2);
  EXPECT_THAT(output_, HasSubstr("--workers"));
  EXPECT_EQ(run({}), 2);
  EXPECT_THAT(output_, HasSubstr("program"));
  std::ofstream(folder_ / "out") << "a file";
  EXPECT_EQ(run({"--strategies", "a", "--", "/bin/true"}), 1);
  EXPECT_THAT(output_, HasSubstr("leat: cannot make " + folder_.path() + "/out/records/a"));
  EXPECT_EQ(run({"--help"}), 0);
  EXPECT_THAT(output_, HasSubstr("compare.html"));
}

}  // namespace
}  // namespace leat
