#include "distributed/timer.h"

#include <gtest/gtest.h>

#include <atomic>
#include <mutex>
#include <vector>

#include "tests/support/eventually.h"

namespace leat {
namespace {

using std::chrono::milliseconds;

TEST(Timer, RunsActionsInOrderOfTheirTimes) {
  Timer timer;
  std::mutex mutex;
  std::vector<int> order;
  const auto now = Timer::Clock::now();
  const auto note = [&](int number) {
    return [&, number] {
      std::lock_guard lock(mutex);
      order.push_back(number);
    };
  };
  timer.at(now + milliseconds(40), note(3));
  timer.at(now + milliseconds(20), note(2));
  timer.at(now, note(1));
  ASSERT_TRUE(eventually([&] {
    std::lock_guard lock(mutex);
    return order.size() == 3;
  }));
  EXPECT_EQ(order, (std::vector<int>{1, 2, 3}));
}

TEST(Timer, CancelledActionDoesNotRun) {
  Timer timer;
  std::atomic<bool> ran{false}, later{false};
  const Timer::Id id = timer.after(milliseconds(30), [&] { ran = true; });
  EXPECT_TRUE(timer.cancel(id));
  EXPECT_FALSE(timer.cancel(id));
  EXPECT_FALSE(timer.cancel(0));
  timer.after(milliseconds(60), [&] { later = true; });
  ASSERT_TRUE(eventually([&] { return later.load(); }));
  EXPECT_FALSE(ran);
}

TEST(Timer, ActionsMayAddAndCancelOthers) {
  Timer timer;
  std::atomic<int> runs{0};
  std::atomic<bool> cancelled_ran{false};
  timer.after(milliseconds(0), [&] {
    const Timer::Id other = timer.after(milliseconds(5), [&] { cancelled_ran = true; });
    EXPECT_TRUE(timer.cancel(other));
    timer.after(milliseconds(10), [&] { ++runs; });
    ++runs;
  });
  EXPECT_TRUE(eventually([&] { return runs == 2; }));
  EXPECT_FALSE(cancelled_ran);
}

TEST(Timer, RunsNothingAfterStop) {
  Timer timer;
  std::atomic<bool> is_inside{false}, may_end{false}, ran{false};
  timer.after(milliseconds(0), [&] {
    is_inside = true;
    while (!may_end) std::this_thread::yield();
    timer.after(milliseconds(0), [&] { ran = true; });
  });
  timer.after(std::chrono::hours(1), [&] { ran = true; });
  ASSERT_TRUE(eventually([&] { return is_inside.load(); }));
  std::thread opener([&] { may_end = true; });
  timer.stop();
  EXPECT_TRUE(may_end) << "it waits for the function that runs";
  opener.join();
  ran = false;  // the added action may have run before stop()
  timer.after(milliseconds(0), [&] { ran = true; });
  timer.stop();
  EXPECT_FALSE(ran);
}

TEST(Timer, DestructorDropsPendingActions) {
  const auto kept = std::make_shared<int>(0);
  {
    Timer timer;
    timer.after(std::chrono::hours(1), [kept] {});
    EXPECT_EQ(kept.use_count(), 2);
  }
  EXPECT_EQ(kept.use_count(), 1);
}

}  // namespace
}  // namespace leat
