// A user's own ops on a cluster: every task loads them, and so does the program.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <regex>

#include "frontends/cpp/session.h"
#include "graph/op_library.h"
#include "graph/ops.h"
#include "tests/support/child_process.h"
#include "tests/support/expect_error.h"

namespace leat {
namespace {

constexpr const char* library = LEAT_BIN_DIR "/examples/libexample_swish.so";

// A library that comes with the C library, and that no program links with.
std::string library_without_ops() {
  for (const auto& folder : std::filesystem::directory_iterator("/usr/lib")) {
    const auto file = folder.path() / "libanl.so.1";
    if (std::filesystem::exists(file)) return file;
  }
  return "";
}

TEST(OpLibrary, IsLoadedByTheTasksAndByTheProgram) {
  ChildProcess up({LEAT_BIN_DIR "/leat", "up", "local:ps=1,worker=1", "--ops", library});
  const std::string output = up.wait_for("Ctrl-C ends it");
  EXPECT_THAT(output, testing::HasSubstr("adds Swish"));
  std::smatch found;
  ASSERT_TRUE(std::regex_search(output, found, std::regex("connect to (grpc://[0-9.:]+)")));
  load_op_library(library);
  Graph g;
  const DeviceScope on_ps(g, "/job:ps/task:0");
  const Output x = placeholder(g, "x", f32, {});
  const Output y = op("Swish", {x}, {{"beta", 1.0F}});
  Session session(g, {.target = found[1]});
  EXPECT_FLOAT_EQ(session.run({{x, 0.0F}}, {y})[0].item<float>(), 0);
  EXPECT_NEAR(session.run({{x, 2.0F}}, {y})[0].item<float>(), 1.7615942F, 1e-6);
  EXPECT_TRUE(load_op_library(library).empty());  // a second time
}

TEST(OpLibrary, ReportsMistakes) {
  expect_error_with(Code::not_found, "cannot be loaded: /no/such.so",
                    [] { load_op_library("/no/such.so"); });
  const std::string other = library_without_ops();
  ASSERT_FALSE(other.empty());
  for (int i = 0; i < 2; ++i) {
    expect_error_with(Code::invalid_argument, "is not an op library: it registers no op",
                      [&] { load_op_library(other); });
  }
  for (int i = 0; i < 2; ++i) {
    expect_error_with(Code::invalid_argument, "libleat_bad_op_library.so: op Relu is defined twice",
                      [] { load_op_library(LEAT_BIN_DIR "/../tests/libleat_bad_op_library.so"); });
  }
  ChildProcess up({LEAT_BIN_DIR "/leat", "up", "local:worker=1", "--ops", "missing.so"});
  EXPECT_EQ(up.wait(), 2);
  EXPECT_THAT(up.output(), testing::HasSubstr("--ops: there is no file missing.so"));
}

}  // namespace
}  // namespace leat
