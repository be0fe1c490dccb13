// Resources that a task can exhaust: file descriptors, memory, room in its log. It rejects what it
// cannot take, continues its work, and recovers.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>

#include <regex>
#include <sstream>

#include "core/error.h"
#include "distributed/grpc/rpc_client.h"
#include "distributed/session_factory.h"
#include "graph/ops.h"
#include "tests/support/child_process.h"
#include "tests/support/counter_graph.h"
#include "tests/support/eventually.h"
#include "tests/support/sanitizers.h"
#include "tests/support/wire.h"

namespace leat {
namespace {

using testing::HasSubstr;

Graph model() {
  Graph graph;
  const DeviceScope on(graph, "/job:ps/task:0");
  add_counter(graph);
  return graph;
}

TEST(FileDescriptors, RunOutAndRecover) {
#if defined(__has_feature)
#if __has_feature(undefined_behavior_sanitizer)
  GTEST_SKIP() << "UBSan looks at memory by way of a pipe, and calls it bad where there is none";
#endif
#endif
  // Each task needs about thirty for itself.
  ChildProcess up(
      {"/bin/bash", "-c", "ulimit -n 64; exec " LEAT_BIN_DIR "/leat up local:ps=1,worker=1"});
  const std::string output = up.wait_for("Ctrl-C ends it");
  std::smatch found;
  ASSERT_TRUE(std::regex_search(output, found, std::regex("connect to (grpc://[0-9.:]+)")));
  SessionOptions options;
  options.target = found[1];
  options.timeout = std::chrono::seconds(2);
  const Graph graph = model();
  const auto first = new_session(options);
  first->extend(graph);
  first->run({}, {}, {"init"});

  // Every session has a connection of its own.
  std::vector<std::unique_ptr<SessionInterface>> sessions;
  Status refused;
  while (refused.is_ok() && sessions.size() < 100) {
    auto session = new_session(options);
    try {
      session->extend(graph);
    } catch (const Error& error) {
      refused = error.status();
    }
    sessions.push_back(std::move(session));
    first->run({}, {}, {"add"});  // connected sessions continue
  }
  EXPECT_FALSE(refused.is_ok());
  EXPECT_THAT(refused.message, HasSubstr(options.target));
  const auto added = static_cast<float>(sessions.size());
  sessions.clear();
  EXPECT_TRUE(eventually([&] {
    try {
      const auto later = new_session(options);
      later->extend(graph);
      return later->run({}, {"w:0"}, {})[0].item<float>() == added;
    } catch (const Error&) {
      return false;
    }
  }));
  up.send_signal(SIGTERM);
  EXPECT_EQ(up.wait(), 0) << up.output();
}

TEST(FileDescriptors, TooFewForAChildAreReported) {
  ChildProcess run(
      {"/bin/bash", "-c", "ulimit -n 16; exec " LEAT_BIN_DIR "/leat run local:worker=1 -- true"});
  EXPECT_EQ(run.wait(), 1);
  EXPECT_THAT(run.output(), HasSubstr("too few file descriptors"));
  EXPECT_THAT(run.output(), HasSubstr("(ulimit -n 16)"));
}

// Thread stacks of half a gigabyte and more, so that only a few threads fit into the address space.
// Which one cannot be started depends on the machine; every such error must say that it is a
// thread.
TEST(Memory, ReportsThreadsThatCannotStart) {
#ifdef LEAT_UNDER_SANITIZER
  GTEST_SKIP() << "a sanitizer reserves more address space than the limit";
#endif
  for (const std::string stack : {"500000", "1000000", "2000000"}) {
    ChildProcess task({"/bin/bash", "-c",
                       "ulimit -s " + stack +
                           "; ulimit -v 2100000; exec timeout 20 " LEAT_BIN_DIR
                           "/leat task local:worker=1 --job worker --task 0"});
    EXPECT_EQ(task.wait(), 1) << task.output();
    EXPECT_THAT(task.output(), testing::StartsWith("leat: "));
    EXPECT_THAT(task.output(), HasSubstr("cannot start a thread"));
    EXPECT_THAT(task.output(), HasSubstr("Resource temporarily unavailable"));
    EXPECT_THAT(task.output(), HasSubstr("ulimit"));
  }
}

TEST(StandardOutput, LostOutputFails) {
  ChildProcess up({LEAT_BIN_DIR "/leat", "up", "local:worker=1"});
  const std::string output = up.wait_for("Ctrl-C ends it");
  std::smatch found;
  ASSERT_TRUE(std::regex_search(output, found, std::regex("connect to (grpc://[0-9.:]+)")));
  for (const std::string& command : {"top " + found[1].str(), std::string("--version")}) {
    for (const std::string to : {">/dev/full", ">&-"}) {
      ChildProcess program({"/bin/bash", "-c", LEAT_BIN_DIR "/leat " + command + " " + to});
      EXPECT_EQ(program.wait(), 1) << command << to;
      EXPECT_THAT(program.output(), HasSubstr("cannot write to standard output"));
    }
  }
  up.send_signal(SIGTERM);
  EXPECT_EQ(up.wait(), 0) << up.output();
}

// protobuf logs each of them.
TEST(Log, IsNotFilledByInvalidUtf8Requests) {
  ChildProcess up({LEAT_BIN_DIR "/leat", "up", "local:worker=1"});
  const std::string output = up.wait_for("Ctrl-C ends it");
  std::smatch found;
  ASSERT_TRUE(std::regex_search(output, found, std::regex("connect to grpc://([0-9.:]+)")));
  {
    RpcClient client(found[1]);
    for (int i = 0; i < 300; ++i) {
      const auto [status, reply] =
          client.call_and_wait("/tensorflow.MasterService/RunStep", wire_format::text(1, "\xff"));
      EXPECT_FALSE(status.is_ok());
    }
  }
  up.send_signal(SIGTERM);
  EXPECT_EQ(up.wait(), 0) << up.output();
  int lines = 0;
  for (size_t at = 0; (at = up.output().find("invalid UTF-8", at)) != std::string::npos; ++at)
    ++lines;
  EXPECT_EQ(lines, 100);
  EXPECT_THAT(up.output(), HasSubstr("no more lines of this kind are written"));
}

}  // namespace
}  // namespace leat
