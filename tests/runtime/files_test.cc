// ReadFile, WriteFile and MatchingFiles in sessions.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include "graph/formats/file.h"
#include "graph/ops.h"
#include "runtime/local_session.h"
#include "tests/support/expect_error.h"
#include "tests/support/scratch_directory.h"

namespace leat {
namespace {

const LocalDevices one_cpu{.cpus = 1, .gpus = false};

// The strings that an op with one or two string inputs returns.
std::vector<std::string> run_on(const std::string& op, const std::vector<std::string>& texts) {
  Graph graph;
  std::vector<Output> inputs;
  for (const std::string& text : texts)
    inputs.push_back(constant(graph, Tensor::scalar(std::string(text))));
  graph.add({.op = op, .name = "node", .inputs = inputs});
  LocalSession session({.timeout = std::chrono::seconds(20)}, one_cpu);
  session.extend(graph);
  if (op == "WriteFile") return session.run({}, {}, {"node"}), std::vector<std::string>{};
  const Tensor out = session.run({}, {"node:0"}, {})[0];
  return {out.span<std::string>().begin(), out.span<std::string>().end()};
}

using testing::ElementsAre;

TEST(Files, ReadAndMatchWrittenFiles) {
  const ScratchDirectory directory;
  run_on("WriteFile", {directory / "a/b/1.txt", "first"});
  run_on("WriteFile", {directory / "a/b/1.txt", "second"});  // overwrites it
  run_on("WriteFile", {directory / "a/c/2.txt", std::string("\0x", 2)});
  EXPECT_EQ(read_file(directory / "a/b/1.txt"), "second");
  EXPECT_THAT(run_on("ReadFile", {directory / "a/c/2.txt"}), ElementsAre(std::string("\0x", 2)));
  EXPECT_THAT(run_on("MatchingFiles", {directory / "a/*/?.txt"}),
              ElementsAre(directory / "a/b/1.txt", directory / "a/c/2.txt"));
  EXPECT_THAT(run_on("MatchingFiles", {directory / "a/[!b]/*"}),
              ElementsAre(directory / "a/c/2.txt"));
  EXPECT_THAT(run_on("MatchingFiles", {directory / "a/d/*"}), ElementsAre());
}

TEST(Files, AcceptFileUrlsAndRejectOthers) {
  const ScratchDirectory directory;
  const std::string url = "file://localhost" + directory.path();
  run_on("WriteFile", {"file://" + (directory / "a/1.txt"), "first"});
  EXPECT_THAT(run_on("ReadFile", {url + "/a/1.txt"}), ElementsAre("first"));
  EXPECT_THAT(run_on("MatchingFiles", {url + "/a/*"}), ElementsAre(url + "/a/1.txt"));
  for (const std::string op : {"ReadFile", "WriteFile", "MatchingFiles"}) {
    std::vector<std::string> texts = {"s3://bucket/x"};
    if (op == "WriteFile") texts.push_back("y");
    expect_error_with(Code::unimplemented,
                      "File system scheme 's3' not implemented (file: 's3://bucket/x')",
                      [&] { run_on(op, texts); });
  }
  expect_error_with(Code::not_found, "a-b://x", [] { run_on("ReadFile", {"a-b://x"}); });
}

TEST(Files, ReportMissingFilesAsNotFound) {
  const ScratchDirectory directory;
  expect_error_with(Code::not_found, "missing",
                    [&] { run_on("ReadFile", {directory / "missing"}); });
  expect_error_with(Code::failed_precondition, "Is a directory",
                    [&] { run_on("ReadFile", {directory.path()}); });
}

// Nobody has the pipe's other end: opening it must not wait.
TEST(Files, RejectPipes) {
  const ScratchDirectory directory;
  const std::string pipe = directory / "pipe";
  ASSERT_EQ(::mkfifo(pipe.c_str(), 0600), 0);
  for (const std::string op : {"ReadFile", "WriteFile"}) {
    expect_error_with(Code::failed_precondition, "is not a regular file", [&] {
      run_on(op, op == "ReadFile" ? std::vector{pipe} : std::vector{pipe, std::string("text")});
    });
  }
}

}  // namespace
}  // namespace leat
