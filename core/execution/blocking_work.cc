#include "core/execution/blocking_work.h"

#include <condition_variable>
#include <deque>
#include <mutex>
#include <system_error>
#include <thread>
#include <vector>

#include "core/error.h"

namespace leat {
namespace {

class BlockingThreads {
 public:
  explicit BlockingThreads(size_t most) : most_(most) {}
  ~BlockingThreads() {
    {
      const std::lock_guard lock(mutex_);
      is_stopping_ = true;
    }
    changed_.notify_all();
    for (std::thread& thread : threads_) thread.join();
  }

  void run(std::function<void()> work) {
    const std::lock_guard lock(mutex_);
    work_.push_back(std::move(work));
    if (idle_ < work_.size() && threads_.size() < most_) add_thread();
    changed_.notify_one();
  }

 private:
  // Where the system gives no more threads, those that are there do the work in turn.
  void add_thread() {
    try {
      threads_.emplace_back([this] { serve(); });
    } catch (const std::system_error& error) {
      if (!threads_.empty()) return;
      work_.pop_back();
      fail(Code::resource_exhausted, "cannot start a thread for a waiting op: ", error.what());
    }
  }

  // What is queued is finished first: a checkpoint that was begun at the end of the process is
  // whole.
  void serve() {
    std::unique_lock lock(mutex_);
    for (;;) {
      ++idle_;
      changed_.wait(lock, [&] { return is_stopping_ || !work_.empty(); });
      --idle_;
      if (work_.empty()) return;
      std::function<void()> work = std::move(work_.front());
      work_.pop_front();
      lock.unlock();
      work();
      work = nullptr;  // what it holds goes before the lock is taken
      lock.lock();
    }
  }

  const size_t most_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<std::function<void()>> work_;
  std::vector<std::thread> threads_;
  size_t idle_ = 0;
  bool is_stopping_ = false;
};

// What waits may hand on work to the others: at the end of the process it goes first.
struct Threads {
  BlockingThreads blocking{4}, waiting{1000};
};
Threads& threads() {
  static Threads all;
  return all;
}

}  // namespace

void run_blocking(std::function<void()> work) { threads().blocking.run(std::move(work)); }

void run_waiting(std::function<void()> work) { threads().waiting.run(std::move(work)); }

}  // namespace leat
