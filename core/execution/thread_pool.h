// The thread pool of a task or local session. All its parallel work runs here (libraries are called
// single-threaded). Blocking work has its own threads (blocking_work.h).
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <type_traits>

namespace leat {

// Threads that claim work. Compute work never blocks: it waits by a callback elsewhere.
// Thread-safe. The destructor runs all scheduled work, then joins.
class ThreadPool {
 public:
  // `threads` counts the caller of parallel_for: with 1, no thread is started and everything runs
  // inline.
  explicit ThreadPool(int threads);
  ~ThreadPool();
  ThreadPool(const ThreadPool&) = delete;

  int threads() const;

  // Runs `work` on a pool thread, never on the caller (a pool of 1 starts one background thread on
  // first use).
  void schedule(std::function<void()> work);
  // Returns when no scheduled work is left or running. Not from a thread of the pool.
  void wait_until_idle();

  // Calls body(begin, end) over [0, n) cut into chunks of at least `grain`. The caller takes part
  // and returns when all is done. Threads claim chunks as they come, each first those of its own
  // part, so a thread without a core delays at most the chunk it holds. With n <= grain, or one
  // thread, calls body(0, n) directly. The caller rethrows the first exception. The body is only
  // borrowed for the call: no allocation.
  template <class Body>
  void parallel_for(int64_t n, int64_t grain, Body&& body) {
    if (n <= 0) return;
    if (n <= grain || threads() == 1) return body(int64_t{0}, n);
    using Plain = std::remove_reference_t<Body>;
    run_loop(
        n, grain,
        [](void* self, int64_t begin, int64_t end) { (*static_cast<Plain*>(self))(begin, end); },
        const_cast<void*>(static_cast<const void*>(&body)));
  }

 private:
  using LoopBody = void (*)(void* self, int64_t begin, int64_t end);
  void run_loop(int64_t n, int64_t grain, LoopBody body, void* self);

  class State;
  std::unique_ptr<State> state_;
};

}  // namespace leat
