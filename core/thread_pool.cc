// The pool's threads, its loops and its queue.
//
// At most one loop is shared out at a time; whoever comes while it runs (a second step, a loop
// within a loop) does its loop alone, since the other threads are busy then. `claim` holds the
// loop's generation and its next chunk in one word, and chunks are taken by compare-and-swap: a
// thread that comes late finds another generation and takes nothing.
#include "core/thread_pool.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <deque>
#include <exception>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>

#include "core/error.h"

namespace leat {
namespace {

using Clock = std::chrono::steady_clock;

// Long while it pays, short once a wait has run out. On a quiet machine the long spin makes small
// products faster; where another process has the core, it takes the time that the other thread
// would need.
constexpr auto long_spin = std::chrono::microseconds(40);
constexpr auto short_spin = std::chrono::microseconds(2);

constexpr int chunk_bits = 16;
constexpr uint64_t chunk_mask = (uint64_t{1} << chunk_bits) - 1;
constexpr int chunks_per_thread = 2;

inline void pause() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#endif
}

// Spins until `ready` or the time is over; reads the clock only now and then.
template <class Ready>
bool spin(std::chrono::nanoseconds limit, Ready&& ready) {
  const auto end = Clock::now() + limit;
  do {
    for (int i = 0; i < 16; ++i) {
      if (ready()) return true;
      pause();
    }
  } while (Clock::now() < end);
  return ready();
}

}  // namespace

class ThreadPool::State {
 public:
  explicit State(int threads) : threads_(threads) {
    check(threads >= 1 && threads < 1024, "a thread pool of ", threads,
          " threads was asked for; it must have 1 to 1023");
    for (int i = 1; i < threads; ++i) workers_.emplace_back([this] { work(); });
  }

  ~State() {
    {
      std::lock_guard lock(mutex_);
      is_stopping_ = true;
    }
    wake_.notify_all();
    for (std::thread& worker : workers_) worker.join();
  }

  int threads() const { return threads_; }

  void schedule(std::function<void()> work_item) {
    std::lock_guard lock(mutex_);
    queue_.push_back(std::move(work_item));
    unfinished_.fetch_add(1, std::memory_order_relaxed);
    queued_.store(queue_.size(), std::memory_order_seq_cst);
    if (workers_.empty()) workers_.emplace_back([this] { work(); });
    // Under the lock: the work may be what its owner waits for before the pool is destroyed.
    wake_.notify_one();
  }

  void wait_until_idle() {
    std::unique_lock lock(mutex_);
    idle_.wait(lock, [this] { return unfinished_.load(std::memory_order_acquire) == 0; });
  }

  void run_loop(int64_t n, int64_t grain, LoopBody body, void* self) {
    if (is_loop_taken_.exchange(true, std::memory_order_acquire)) return body(self, 0, n);
    const auto chunks = static_cast<uint64_t>(std::clamp<int64_t>(
        n / std::max<int64_t>(grain, 1), 1, int64_t{threads_} * chunks_per_thread));

    // Nobody holds a chunk of the last loop; a late thread may still read the fields, but its claim
    // fails.
    loop_.body.store(body, std::memory_order_release);
    loop_.self.store(self, std::memory_order_release);
    loop_.n.store(n, std::memory_order_release);
    loop_.chunks.store(chunks, std::memory_order_release);
    loop_.done.store(0, std::memory_order_relaxed);
    ++generation_;
    claim_.store(generation_ << chunk_bits, std::memory_order_seq_cst);
    if (sleepers_.load(std::memory_order_seq_cst) > 0) {
      { std::lock_guard lock(mutex_); }
      wake_.notify_all();
    }

    take_chunks();
    wait_for_chunks(chunks);
    claim_.store((generation_ << chunk_bits) | chunk_mask,
                 std::memory_order_release);  // closed: no chunk is left

    std::exception_ptr error;
    if (loop_.has_failed.load(std::memory_order_acquire)) {
      error = std::exchange(loop_.error, nullptr);
      loop_.has_failed.store(false, std::memory_order_relaxed);
    }
    is_loop_taken_.store(false, std::memory_order_release);
    if (error) std::rethrow_exception(error);
  }

 private:
  struct Loop {
    std::atomic<LoopBody> body{nullptr};
    std::atomic<void*> self{nullptr};
    std::atomic<int64_t> n{0};
    std::atomic<uint64_t> chunks{0};
    alignas(64) std::atomic<uint32_t> done{0};
    std::atomic<bool> has_failed{false};
    std::mutex error_mutex;
    std::exception_ptr error;
  };

  bool has_open_chunk() const {
    const uint64_t claim = claim_.load(std::memory_order_seq_cst);
    return (claim & chunk_mask) < loop_.chunks.load(std::memory_order_acquire);
  }

  // Run by the caller and every pool thread that is awake. Returns the number of chunks this thread
  // did.
  uint32_t take_chunks() {
    uint32_t done = 0;
    uint64_t claim = claim_.load(std::memory_order_acquire);
    for (;;) {
      const LoopBody body = loop_.body.load(std::memory_order_acquire);
      void* const self = loop_.self.load(std::memory_order_acquire);
      const int64_t n = loop_.n.load(std::memory_order_acquire);
      const uint64_t chunks = loop_.chunks.load(std::memory_order_acquire);
      const uint64_t chunk = claim & chunk_mask;
      if (chunk >= chunks) break;
      // Succeeds only if no other loop began since: then what was read above is this loop's.
      if (!claim_.compare_exchange_weak(claim, claim + 1, std::memory_order_acq_rel,
                                        std::memory_order_acquire))
        continue;
      run_chunk(body, self, part(n, chunk, chunks), part(n, chunk + 1, chunks));
      ++done;
      // Held until it is reported: the loop, and its generation, cannot end before.
      claim = claim_.load(std::memory_order_acquire);
      if ((claim & chunk_mask) >= chunks) break;
    }
    if (done > 0) finish(done);
    return done;
  }

  static int64_t part(int64_t n, uint64_t chunk, uint64_t chunks) {
    const auto c = static_cast<int64_t>(chunk), of = static_cast<int64_t>(chunks);
    return n / of * c + n % of * c / of;
  }

  void run_chunk(LoopBody body, void* self, int64_t begin, int64_t end) {
    if (loop_.has_failed.load(std::memory_order_relaxed)) return;
    try {
      body(self, begin, end);
    } catch (...) {
      std::lock_guard lock(loop_.error_mutex);
      if (!loop_.error) loop_.error = std::current_exception();
      loop_.has_failed.store(true, std::memory_order_release);
    }
  }

  // One shared write per thread, not per chunk.
  void finish(uint32_t done) {
    const uint32_t total = loop_.done.fetch_add(done, std::memory_order_seq_cst) + done;
    if (total == loop_.chunks.load(std::memory_order_relaxed) &&
        is_caller_asleep_.load(std::memory_order_seq_cst)) {
      { std::lock_guard lock(mutex_); }
      finished_.notify_one();
    }
  }

  void wait_for_chunks(uint64_t chunks) {
    const auto is_done = [&] { return loop_.done.load(std::memory_order_seq_cst) == chunks; };
    if (is_done()) return;
    if (spin(caller_spin_, is_done)) {
      caller_spin_ = long_spin;
      return;
    }
    caller_spin_ = short_spin;
    std::unique_lock lock(mutex_);
    is_caller_asleep_.store(true, std::memory_order_seq_cst);
    finished_.wait(lock, is_done);
    is_caller_asleep_.store(false, std::memory_order_relaxed);
  }

  void work() {
    std::chrono::nanoseconds patience = short_spin;
    for (;;) {
      if (has_open_chunk() && take_chunks() > 0) patience = long_spin;
      const auto has_work = [&] {
        return has_open_chunk() || queued_.load(std::memory_order_seq_cst) > 0;
      };
      if (!spin(patience, has_work)) {
        patience = short_spin;
        std::unique_lock lock(mutex_);
        sleepers_.fetch_add(1, std::memory_order_seq_cst);
        wake_.wait(lock, [&] { return has_work() || is_stopping_; });
        sleepers_.fetch_sub(1, std::memory_order_relaxed);
        if (is_stopping_ && queue_.empty()) return;
      }
      if (std::function<void()> item = next_scheduled()) {
        item();
        item = nullptr;
        if (unfinished_.fetch_sub(1, std::memory_order_acq_rel) == 1) {
          { std::lock_guard lock(mutex_); }
          idle_.notify_all();
        }
      }
    }
  }

  std::function<void()> next_scheduled() {
    if (queued_.load(std::memory_order_relaxed) == 0) return nullptr;
    std::lock_guard lock(mutex_);
    if (queue_.empty()) return nullptr;
    std::function<void()> item = std::move(queue_.front());
    queue_.pop_front();
    queued_.store(queue_.size(), std::memory_order_relaxed);
    return item;
  }

  const int threads_;
  Loop loop_;
  // Generation, chunk. Closed until a loop's fields are all there.
  alignas(64) std::atomic<uint64_t> claim_{chunk_mask};
  alignas(64) std::atomic<bool> is_loop_taken_{false};
  uint64_t generation_ = 0;                           // of the loop's owner
  std::chrono::nanoseconds caller_spin_ = long_spin;  // likewise
  std::atomic<bool> is_caller_asleep_{false};
  std::atomic<int> sleepers_{0};
  std::atomic<size_t> queued_{0}, unfinished_{0};  // scheduled: and not begun, and not ended

  std::mutex mutex_;  // guards what follows, and sleeping
  std::condition_variable wake_, finished_, idle_;
  std::deque<std::function<void()>> queue_;
  std::vector<std::thread> workers_;
  bool is_stopping_ = false;
};

ThreadPool::ThreadPool(int threads) : state_(std::make_unique<State>(threads)) {}
ThreadPool::~ThreadPool() = default;
int ThreadPool::threads() const { return state_->threads(); }
void ThreadPool::schedule(std::function<void()> work) { state_->schedule(std::move(work)); }
void ThreadPool::wait_until_idle() { state_->wait_until_idle(); }
void ThreadPool::run_loop(int64_t n, int64_t grain, LoopBody body, void* self) {
  state_->run_loop(n, grain, body, self);
}

}  // namespace leat
