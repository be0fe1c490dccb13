#include "core/execution/thread_pool.h"

#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <condition_variable>
#include <future>
#include <mutex>
#include <numeric>
#include <thread>
#include <vector>

#include "core/error.h"
#include "core/execution/step_end.h"
#include "core/execution/work_source.h"

namespace leat {
namespace {

// Counts down to zero; waits with a deadline that names what is missing.
class Countdown {
 public:
  explicit Countdown(int n) : left_(n) {}
  void tick() {
    std::lock_guard lock(mutex_);
    if (--left_ == 0) zero_.notify_all();
  }
  [[nodiscard]] bool wait() {
    std::unique_lock lock(mutex_);
    return zero_.wait_for(lock, std::chrono::seconds(60), [&] { return left_ <= 0; });
  }

 private:
  std::mutex mutex_;
  std::condition_variable zero_;
  int left_;
};

class ThreadPoolTest : public testing::TestWithParam<int> {};
INSTANTIATE_TEST_SUITE_P(Threads, ThreadPoolTest, testing::Values(1, 2, 3, 4, 8, 16, 32));

TEST_P(ThreadPoolTest, VisitsEveryIndexOnce) {
  ThreadPool pool(GetParam());
  for (int64_t n : {0, 1, 2, 7, 63, 64, 65, 1000, 4097}) {
    for (int64_t grain : {1, 3, 64, 5000}) {
      std::vector<int> visits(n);
      pool.parallel_for(n, grain, [&](int64_t begin, int64_t end) {
        for (int64_t i = begin; i < end; ++i) ++visits[i];
      });
      EXPECT_EQ(std::count(visits.begin(), visits.end(), 1), n) << "n " << n << ", grain " << grain;
    }
  }
}

TEST_P(ThreadPoolTest, ChunksAreAtLeastTheGrain) {
  ThreadPool pool(GetParam());
  std::atomic<bool> is_too_small{false};
  for (int64_t n : {10, 99, 1000}) {
    pool.parallel_for(n, 7, [&](int64_t begin, int64_t end) {
      if (end - begin < 7) is_too_small = true;
    });
  }
  EXPECT_FALSE(is_too_small);
}

TEST_P(ThreadPoolTest, ConsecutiveLoopsKeepTheirChunksApart) {
  ThreadPool pool(GetParam());
  // A thread that is late must not take a chunk of a later loop with the earlier loop's body.
  for (int loop = 0; loop < 3000; ++loop) {
    const int n = 2 + loop % 17;
    std::vector<int> values(n, -1);
    pool.parallel_for(n, 1, [&, loop](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) values[i] = loop;
    });
    ASSERT_EQ(std::count(values.begin(), values.end(), loop), n) << "loop " << loop;
  }
}

TEST_P(ThreadPoolTest, RunsConcurrentAndNestedLoops) {
  ThreadPool pool(GetParam());
  std::atomic<int64_t> sum{0};
  std::vector<std::thread> callers;
  for (int caller = 0; caller < 4; ++caller) {
    callers.emplace_back([&] {
      for (int loop = 0; loop < 100; ++loop) {
        pool.parallel_for(8, 1, [&](int64_t begin, int64_t end) {
          pool.parallel_for(end - begin, 1, [&](int64_t b, int64_t e) { sum += e - b; });
        });
      }
    });
  }
  for (std::thread& caller : callers) caller.join();
  EXPECT_EQ(sum, 4 * 100 * 8);
}

// Threads that have just started look for a loop while the first one is set up. It must not open
// before it is complete.
TEST_P(ThreadPoolTest, FirstLoopRunsEveryChunkOnce) {
  constexpr int64_t n = 64;
  for (int round = 0; round < 300; ++round) {
    ThreadPool pool(GetParam());
    std::array<std::atomic<int>, n> runs{};
    pool.parallel_for(n, 1, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) ++runs[static_cast<size_t>(i)];
    });
    for (const auto& count : runs) ASSERT_EQ(count, 1) << "in round " << round;
  }
}

TEST_P(ThreadPoolTest, FirstExceptionReachesTheCallerAndThePoolContinues) {
  ThreadPool pool(GetParam());
  for (int round = 0; round < 20; ++round) {
    EXPECT_THROW(pool.parallel_for(
                     100, 1, [](int64_t, int64_t) { fail(Code::out_of_range, "label 7 of 5"); }),
                 Error);
    std::atomic<int64_t> sum{0};
    pool.parallel_for(100, 1, [&](int64_t begin, int64_t end) { sum += end - begin; });
    EXPECT_EQ(sum, 100);
  }
}

TEST_P(ThreadPoolTest, ScheduledWorkRunsOnAnotherThread) {
  ThreadPool pool(GetParam());
  Countdown left(200);
  std::atomic<bool> is_caller{false};
  const auto caller = std::this_thread::get_id();
  for (int i = 0; i < 200; ++i) {
    pool.schedule([&] {
      if (std::this_thread::get_id() == caller) is_caller = true;
      int64_t sum = 0;
      pool.parallel_for(4, 1,
                        [&](int64_t begin, int64_t end) { std::atomic_ref(sum) += end - begin; });
      left.tick();
    });
  }
  ASSERT_TRUE(left.wait()) << "scheduled work did not run";
  EXPECT_FALSE(is_caller);
}

TEST_P(ThreadPoolTest, DestructorRunsScheduledWork) {
  std::atomic<int> ran{0};
  {
    ThreadPool pool(GetParam());
    for (int i = 0; i < 100; ++i) pool.schedule([&] { ++ran; });
  }
  EXPECT_EQ(ran, 100);
}

TEST_P(ThreadPoolTest, IsIdleWhenAllScheduledWorkHasEnded) {
  ThreadPool pool(GetParam());
  pool.wait_until_idle();
  std::atomic<int> ended{0};
  std::function<void(int)> work = [&](int depth) {
    if (depth > 0) pool.schedule([&, depth] { work(depth - 1); });
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
    ++ended;
  };
  for (int i = 0; i < 8; ++i) pool.schedule([&] { work(3); });
  pool.wait_until_idle();
  EXPECT_EQ(ended, 32);
}

TEST_P(ThreadPoolTest, LoopsEndWhileAnotherThreadIsBusy) {
  std::atomic<bool> is_over{false};
  std::thread busy([&] {
    while (!is_over.load(std::memory_order_relaxed)) {
    }
  });
  {
    ThreadPool pool(GetParam());
    std::atomic<int64_t> sum{0};
    for (int loop = 0; loop < 200; ++loop) {
      pool.parallel_for(16, 1, [&](int64_t begin, int64_t end) { sum += end - begin; });
    }
    EXPECT_EQ(sum, 200 * 16);
  }
  is_over = true;
  busy.join();
}

TEST(ThreadPool, ThreadsBeginWithTheSamePartOfEveryLoop) {
  using Clock = std::chrono::steady_clock;
  ThreadPool pool(2);
  const auto caller = std::this_thread::get_id();
  const auto deadline = Clock::now() + std::chrono::seconds(60);
  int shared = 0;  // loops in which each thread had its first chunk at the same time
  while (shared < 20 && Clock::now() < deadline) {
    std::atomic<int64_t> first_of_caller{-1}, first_of_other{-1};
    std::atomic<bool> has_come{false};
    pool.parallel_for(4, 1, [&](int64_t begin, int64_t) {
      const bool is_caller = std::this_thread::get_id() == caller;
      auto& first = is_caller ? first_of_caller : first_of_other;
      const auto& of_the_other = is_caller ? first_of_other : first_of_caller;
      if (first >= 0) return;
      first = begin;
      const auto patience = Clock::now() + std::chrono::milliseconds(100);
      while (of_the_other < 0 && Clock::now() < patience) std::this_thread::yield();
      if (is_caller) has_come = first_of_other >= 0;
    });
    if (!has_come) continue;
    ++shared;
    EXPECT_EQ(first_of_caller, 0);
    EXPECT_EQ(first_of_other, 2);
  }
  EXPECT_EQ(shared, 20);
}

TEST(ThreadPool, LoopsRunWithoutAThreadThatSeemsToHaveLostItsCore) {
  using Clock = std::chrono::steady_clock;
  ThreadPool pool(2);
  const auto caller = std::this_thread::get_id();
  const auto start = Clock::now();
  Countdown both(2);
  std::atomic<int> ticks_of_caller{0};
  pool.parallel_for(4, 1, [&](int64_t, int64_t) {
    const bool is_caller = std::this_thread::get_id() == caller;
    if (is_caller && ticks_of_caller++ > 0) return;
    both.tick();
    EXPECT_TRUE(both.wait()) << "one thread took everything";
    // Much longer than the caller can have been in its chunks.
    if (!is_caller)
      std::this_thread::sleep_for(std::chrono::milliseconds(20) + 4 * (Clock::now() - start));
  });
  const auto is_shared = [&] {
    std::atomic<bool> out{false};
    pool.parallel_for(4, 1, [&](int64_t, int64_t) {
      if (std::this_thread::get_id() != caller) out = true;
      std::this_thread::sleep_for(std::chrono::milliseconds(1));  // the other thread may come
    });
    return out.load();
  };
  for (int loop = 0; loop < 4; ++loop) EXPECT_FALSE(is_shared()) << "loop " << loop;
  const auto deadline = Clock::now() + std::chrono::seconds(60);
  bool is_shared_again = false;
  while (!is_shared_again && Clock::now() < deadline) is_shared_again = is_shared();
  EXPECT_TRUE(is_shared_again);
}

TEST(ThreadPool, RejectsImpossibleSizes) {
  EXPECT_THROW(ThreadPool(-1), Error);
  EXPECT_THROW(ThreadPool(1024), Error);
}

// ---- Abandoned work

constexpr auto a_while = std::chrono::milliseconds(2);

TEST(StepEnd, LoopStopsWhenItsStepHasEnded) {
  for (const int threads : {0, 2, 4}) {
    ThreadPool pool(threads);
    StepEnd::Flag end{false};
    const StepEnd::Scope scope(&end);
    std::atomic<int64_t> done{0};
    try {
      pool.parallel_for(1'000'000, 1, [&](int64_t begin, int64_t stop) {
        for (int64_t i = begin; i < stop; ++i)
          std::this_thread::sleep_for(std::chrono::microseconds(50));
        done += stop - begin;
        end = true;
      });
      ADD_FAILURE() << "the loop went on to its end, with " << threads << " threads";
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), Code::cancelled);
      EXPECT_TRUE(error.status().derived);
    }
    EXPECT_LE(done, std::max(threads, 1)) << "each thread begins with one grain";
  }
}

TEST(StepEnd, LoopsThatCheckTheStepVisitEveryIndexOnce) {
  for (const int threads : {0, 2, 4}) {
    ThreadPool pool(threads);
    const StepEnd::Flag end{false};
    const StepEnd::Scope scope(&end);
    for (const int64_t n : {1, 2, 63, 64, 65, 1000, 40'097}) {
      for (const int64_t grain : {1, 3, 64, 5000}) {
        std::vector<int> visits(n);
        pool.parallel_for(n, grain, [&](int64_t begin, int64_t stop) {
          for (int64_t i = begin; i < stop; ++i) ++visits[i];
        });
        EXPECT_EQ(std::count(visits.begin(), visits.end(), 1), n) << n << ", grain " << grain;
      }
    }
  }
}

TEST(StepEnd, HelpingThreadsCheckTheStepOfTheLoop) {
  ThreadPool pool(3);
  StepEnd::Flag end{false};
  const StepEnd::Scope scope(&end);
  std::atomic<int> others{0};
  pool.parallel_for(64, 1, [&](int64_t, int64_t) {
    if (StepEnd::of_thread() != &end) ++others;
    std::this_thread::sleep_for(std::chrono::microseconds(100));
  });
  EXPECT_EQ(others, 0);
  pool.schedule([&] {
    if (StepEnd::of_thread() != nullptr) ++others;
  });
  pool.wait_until_idle();
  EXPECT_EQ(others, 0) << "a thread that has helped goes on with other work";
}

TEST(StepEnd, WorkWithoutAStepIsNotStopped) {
  ThreadPool pool(2);
  StepEnd::Flag end{true};
  const StepEnd::Scope scope(&end);
  EXPECT_THROW(StepEnd::ask(), Error);
  const StepEnd::Scope to_its_end(nullptr);
  std::atomic<int64_t> sum{0};
  pool.parallel_for(1000, 1, [&](int64_t begin, int64_t stop) { sum += stop - begin; });
  EXPECT_EQ(sum, 1000);
}

// ---- Work of several sources

// Long work occupies all of the pool's threads, and more of it waits.
TEST(Sources, ShortWorkRunsBesideLongWork) {
  for (const int threads : {0, 2, 3}) {
    ThreadPool pool(threads);
    std::promise<void> ends;
    const std::shared_future<void> end = ends.get_future().share();
    for (WorkSource::Id client = 10; client < 16; ++client) {
      const WorkSource::Scope source(client);
      for (int i = 0; i < 3; ++i) pool.schedule([end] { end.wait(); });
    }
    std::this_thread::sleep_for(a_while);
    for (WorkSource::Id client : {WorkSource::Id{77}, WorkSource::requests, WorkSource::requests}) {
      const WorkSource::Scope source(client);
      Countdown left(1);
      pool.schedule([&] { left.tick(); });
      EXPECT_TRUE(left.wait()) << "it waits behind all that is long, with " << threads
                               << " threads";
    }
    ends.set_value();
  }
}

TEST(Sources, BusySourceDoesNotBlockAnother) {
  ThreadPool pool(0);  // one thread for scheduled work
  std::mutex mutex;
  std::vector<WorkSource::Id> order;
  Countdown left(8);
  {
    const std::lock_guard hold(mutex);  // the first piece of work waits here until all is scheduled
    for (const WorkSource::Id client : {5, 5, 5, 5, 5, 5, 5, 6}) {
      const WorkSource::Scope source(client);
      pool.schedule([&, client] {
        {
          const std::lock_guard lock(mutex);
          order.push_back(client);
        }
        left.tick();
      });
    }
  }
  ASSERT_TRUE(left.wait());
  const auto at = std::find(order.begin(), order.end(), WorkSource::Id{6}) - order.begin();
  EXPECT_LT(at, 3);
}

TEST(Sources, WorkSchedulesForItsOwnSource) {
  ThreadPool pool(2);
  std::atomic<WorkSource::Id> inner{0};
  {
    const WorkSource::Scope source(9);
    pool.schedule([&] { pool.schedule([&] { inner = WorkSource::of_thread(); }); });
  }
  pool.wait_until_idle();
  EXPECT_EQ(inner, 9u);
}

TEST(Sources, ManySourcesAtOnceLoseNoWork) {
  std::atomic<int> ran{0};
  {
    ThreadPool pool(3);
    std::vector<std::thread> clients;
    for (WorkSource::Id client = 2; client < 10; ++client) {
      clients.emplace_back([&, client] {
        const WorkSource::Scope source(client);
        for (int i = 0; i < 200; ++i) {
          pool.schedule([&, i] {
            if (i % 50 == 0) std::this_thread::sleep_for(std::chrono::milliseconds(15));
            ++ran;
          });
        }
      });
    }
    for (std::thread& client : clients) client.join();
    pool.wait_until_idle();
    EXPECT_EQ(ran, 8 * 200);
    const WorkSource::Scope source(3);
    for (int i = 0; i < 50; ++i) pool.schedule([&] { ++ran; });
  }
  EXPECT_EQ(ran, 8 * 200 + 50);
}

}  // namespace
}  // namespace leat
