// leat doctor: what it finds on a machine without GPU, and which tasks of a cluster reach each
// other.
#include "tools/leat/doctor_text.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/support/eventually.h"
#include "tests/support/expect_error.h"
#include "tests/support/in_process_cluster.h"

namespace leat {
namespace {

using testing::AllOf;
using testing::ContainsRegex;
using testing::HasSubstr;
using testing::Not;

TEST(Doctor, ListsBuiltInFeaturesAndTheirPaths) {
  EXPECT_THAT(description_of_this_machine(),
              AllOf(ContainsRegex("program\n +version +[0-9]+\\.[0-9]+"),
                    ContainsRegex("cores +[1-9]"), ContainsRegex("libleat\\.so[.0-9]* +/"),
                    ContainsRegex("libdnnl\\.so[.0-9]* +/"), ContainsRegex("GPU\n +driver +"),
                    HasSubstr("/job:localhost/replica:0/task:0/device:CPU:0")));
}

TEST(Doctor, ReportsTasksThatReachAllOthers) {
  InProcessCluster cluster({{"ps", 1}, {"worker", 2}});
  bool all = false;
  const std::string text = to_text(who_reaches_whom(cluster.target("worker", 1)), all);
  EXPECT_TRUE(all);
  for (const char* task : {"/job:ps/task:0", "/job:worker/task:0", "/job:worker/task:1"})
    EXPECT_THAT(text, ContainsRegex(std::string(task) + " +127.0.0.1:[0-9]+ +all 3\n"));
  EXPECT_THAT(text, HasSubstr("through shared memory: /job:ps/task:0, /job:worker/task:0\n"));
  EXPECT_THAT(text, Not(HasSubstr("through gRPC")));
}

TEST(Doctor, ReportsTasksThatShareNoMemory) {
  InProcessCluster cluster({{"ps", 1}, {"worker", 2}}, InProcessCluster::default_options(),
                           [](const TaskName& viewer, const ClusterSpec& spec) {
                             ClusterSpec view = spec;
                             view.set_shares_memory(viewer.job == "ps" || viewer.index == 1);
                             return view;
                           });
  bool all = false;
  const std::string text = to_text(who_reaches_whom(cluster.target("ps")), all);
  EXPECT_TRUE(all);
  EXPECT_THAT(text, AllOf(ContainsRegex("/job:ps/task:0 +127.0.0.1:[0-9]+ +all 3\n"
                                        " +through shared memory: /job:worker/task:1\n"
                                        " +through gRPC: /job:worker/task:0\n"),
                          ContainsRegex("/job:worker/task:0 +127.0.0.1:[0-9]+ +all 3\n"
                                        " +through gRPC: /job:ps/task:0, /job:worker/task:1\n")));
}

TEST(Doctor, ReportsWhichTasksMissALostTask) {
  InProcessCluster cluster({{"ps", 1}, {"worker", 1}});
  cluster.kill("ps");
  bool all = true;
  std::string text;
  EXPECT_TRUE(eventually([&] {
    text = to_text(who_reaches_whom(cluster.target("worker")), all);
    return !all;
  }));
  EXPECT_THAT(text,
              AllOf(ContainsRegex("/job:ps/task:0 +127.0.0.1:[0-9]+ +cannot ask it from here: "),
                    ContainsRegex("/job:worker/task:0 .*not /job:ps/task:0: ")));
}

TEST(Doctor, FailsIfNobodyListensAtTheTarget) {
  expect_error_with(Code::unavailable, "127.0.0.1:1",
                    [] { who_reaches_whom("grpc://127.0.0.1:1"); });
}

}  // namespace
}  // namespace leat
