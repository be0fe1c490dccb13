#include "distributed/master/cluster_program_cache.h"

#include <gtest/gtest.h>

#include "core/error.h"

namespace leat {
namespace {

StepSignature signature(const std::string& fetch) { return {{}, {fetch}, {}}; }

ClusterProgramCache::Program program(const TaskName& task = {"ps", 0}) {
  // These tests do not cover deregistration with a worker.
  struct NoWorker final : WorkerClient {
    void status(Deadline, Done<WorkerStatus>) override {}
    void register_graph(RegisterGraph, Deadline, Done<uint64_t>) override {}
    void deregister_graph(const std::string&, uint64_t) override {}
    void run_graph(RunGraph, Deadline, Done<RunGraphResult>) override {}
    void abort_step(int64_t, const Status&, Deadline, Done<std::vector<StepActivity>>) override {}
    void activity(Deadline, Done<TaskActivity>) override {}
    void cleanup_session(const std::string&) override {}
    void reset(const std::vector<std::string>&, Deadline, Done<>) override {}
  };
  const auto out = std::make_shared<ClusterProgram>();
  out->parts.emplace_back();
  out->parts[0].task = task;
  out->parts[0].worker = std::make_shared<NoWorker>();
  return out;
}

TEST(ClusterProgramCache, OneCallerBuildsOthersWait) {
  ClusterProgramCache cache(10);
  int ready = 0;
  const auto count = [&](const Status& status, const ClusterProgramCache::Program& got) {
    EXPECT_TRUE(status.is_ok());
    EXPECT_NE(got, nullptr);
    ++ready;
  };
  EXPECT_TRUE(cache.get(signature("a:0"), count));
  EXPECT_FALSE(cache.get(signature("a:0"), count));
  EXPECT_TRUE(cache.get(signature("b:0"), count)) << "another signature";
  EXPECT_EQ(ready, 0);
  cache.built(signature("a:0"), {}, program());
  EXPECT_EQ(ready, 2);
  EXPECT_FALSE(cache.get(signature("a:0"), count));
  EXPECT_EQ(ready, 3);
}

TEST(ClusterProgramCache, ForgetsUnusedPrograms) {
  ClusterProgramCache cache(10);
  ClusterProgramCache::Program held;
  const auto hold = [&](const Status&, const ClusterProgramCache::Program& got) { held = got; };
  const auto look = [](const Status&, const ClusterProgramCache::Program&) {};
  for (const char* name : {"held:0", "free:0"}) {
    EXPECT_TRUE(cache.get(signature(name), look));
    cache.built(signature(name), {}, program());
  }
  EXPECT_TRUE(cache.get(signature("in work:0"), look));
  EXPECT_FALSE(cache.get(signature("held:0"), hold));
  cache.forget_unused(std::chrono::hours(1));
  EXPECT_FALSE(cache.get(signature("free:0"), look));
  cache.forget_unused(std::chrono::seconds(0));
  EXPECT_TRUE(cache.get(signature("free:0"), look)) << "built anew";
  EXPECT_FALSE(cache.get(signature("held:0"), look)) << "a step runs it";
  EXPECT_FALSE(cache.get(signature("in work:0"), look)) << "somebody waits for it";
}

TEST(ClusterProgramCache, ForgetsFailedBuilds) {
  ClusterProgramCache cache(10);
  std::vector<Status> got;
  const auto note = [&](const Status& status, const ClusterProgramCache::Program&) {
    got.push_back(status);
  };
  EXPECT_TRUE(cache.get(signature("a:0"), note));
  cache.built(signature("a:0"), {Code::not_found, "no a", false}, nullptr);
  ASSERT_EQ(got.size(), 1u);
  EXPECT_EQ(got[0].message, "no a");
  EXPECT_TRUE(cache.get(signature("a:0"), note)) << "tried again";
}

TEST(ClusterProgramCache, DropsTheLeastRecentlyUsed) {
  ClusterProgramCache cache(2);
  const auto ignore = [](const Status&, const ClusterProgramCache::Program&) {};
  const auto add = [&](const std::string& fetch) {
    EXPECT_TRUE(cache.get(signature(fetch), ignore)) << fetch;
    cache.built(signature(fetch), {}, program());
  };
  add("a:0");
  add("b:0");
  EXPECT_FALSE(cache.get(signature("a:0"), ignore));  // now b is the oldest
  add("c:0");
  EXPECT_FALSE(cache.get(signature("a:0"), ignore));
  EXPECT_TRUE(cache.get(signature("b:0"), ignore)) << "dropped";
}

TEST(ClusterProgramCache, ForgetsProgramsOfARestartedTask) {
  ClusterProgramCache cache(10);
  const auto ignore = [](const Status&, const ClusterProgramCache::Program&) {};
  for (const int index : {0, 1}) {
    const std::string fetch = concat("f", index, ":0");
    EXPECT_TRUE(cache.get(signature(fetch), ignore));
    cache.built(signature(fetch), {}, program({"ps", index}));
  }
  cache.forget({{"ps", 1}});
  EXPECT_FALSE(cache.get(signature("f0:0"), ignore));
  EXPECT_TRUE(cache.get(signature("f1:0"), ignore));
}

TEST(ClusterProgramCache, CloseDropsProgramsAndEndsWaits) {
  ClusterProgramCache cache(10);
  std::vector<Status> told;
  const auto tell = [&](const Status& status, const ClusterProgramCache::Program& program) {
    EXPECT_EQ(program, nullptr);
    told.push_back(status);
  };
  EXPECT_TRUE(cache.get(signature("a:0"), tell));
  EXPECT_FALSE(cache.get(signature("a:0"), tell));
  cache.close();
  EXPECT_EQ(told.size(), 2u);
  const ClusterProgramCache::Program late = program();
  cache.built(signature("a:0"), {}, late);
  EXPECT_EQ(late.use_count(), 1);
  EXPECT_FALSE(cache.get(signature("b:0"), tell));
  ASSERT_EQ(told.size(), 3u);
  for (const Status& status : told) EXPECT_EQ(status.code, Code::cancelled);
}

}  // namespace
}  // namespace leat
