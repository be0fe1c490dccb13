#include "frontends/cpp/training/progress.h"

#include <gtest/gtest.h>

#include <cstdio>
#include <thread>

namespace leat {
namespace {

// A training that resumes from a checkpoint has not run the steps before it.
TEST(Progress, RateCountsOnlyThisProcessesSteps) {
  testing::internal::CaptureStdout();
  {
    Progress progress(10'000, 50);
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
    progress.update(9'001, 0.5);
  }
  const std::string line = testing::internal::GetCapturedStdout();
  double thousands = -1;
  const size_t loss = line.find("loss");
  ASSERT_NE(loss, std::string::npos) << line;
  ASSERT_EQ(std::sscanf(line.c_str() + loss, "loss %*f %lfk samples/s", &thousands), 1) << line;
  EXPECT_LE(thousands, 1.0) << line;  // 50 in 50 ms
}

}  // namespace
}  // namespace leat
