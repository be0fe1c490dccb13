// The pool's threads, its loops and its queue.
//
// At most one loop is shared out at a time. A caller that arrives while it runs (a second step, a
// loop within a loop) runs its loop alone, since the other threads are busy. `claim` holds the
// loop's generation and which chunks are taken in one word, and threads take chunks by
// compare-and-swap: a late thread finds another generation and takes nothing. Each thread begins
// with the same part of every loop, since its cache may hold what an earlier loop left there.
//
// Where work may become unwanted (step_end.h), a thread splits its chunk into pieces and asks
// between them.
//
// Scheduled work waits in a line per source (work_source.h). Sources are served in turn, those with
// the least running work first. A kernel may hold its thread for long, and nothing preempts it. If
// other sources' work waits meanwhile, and no thread has come back for a while, a spare thread
// takes work from a source that has none running; the system's scheduler does the rest. So there is
// at most one spare thread per client with long work.
#include "core/execution/thread_pool.h"

#include <algorithm>
#include <atomic>
#include <bit>
#include <chrono>
#include <condition_variable>
#include <exception>
#include <list>
#include <mutex>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

#include "core/error.h"
#include "core/execution/step_end.h"
#include "core/execution/work_lines.h"
#include "core/execution/work_source.h"
#include "core/flush_denormals.h"

namespace leat {
namespace {

using Clock = std::chrono::steady_clock;

// Long while it pays, short once a wait has run out. On a quiet machine the long spin makes small
// products faster; where another process has the core, it takes the time that the other thread
// would need.
constexpr auto long_spin = std::chrono::microseconds(40);
constexpr auto short_spin = std::chrono::microseconds(2);

// The chunks of a loop that are taken: a bit for each, or how many of them if there are many.
constexpr int chunk_bits = 32;
constexpr uint64_t chunk_mask = (uint64_t{1} << chunk_bits) - 1;
constexpr int chunks_per_thread = 2;

// The caller waits for the others' last chunks about as long as a chunk takes. Much longer, and a
// thread seems to have lost its core in the middle of one, to another process that will take it
// again. Then loops run without the others for ten times as long as the wait was: at most a tenth
// of the time is lost.
constexpr double patience_in_chunks = 1.5;
constexpr auto least_patience = std::chrono::microseconds(50);
constexpr int times_alone = 10;

bool has_bits(uint64_t chunks) { return chunks <= chunk_bits; }
bool is_any_open(uint64_t claim, uint64_t chunks) {
  const uint64_t taken = claim & chunk_mask;
  return has_bits(chunks) ? taken + 1 < uint64_t{1} << chunks : taken < chunks;
}
// A chunk that is open, if possible `wanted` or one after it.
uint64_t open_chunk(uint64_t claim, uint64_t chunks, uint64_t wanted) {
  if (!has_bits(chunks)) return claim & chunk_mask;
  const uint64_t open = ~claim & ((uint64_t{1} << chunks) - 1), behind = open >> wanted << wanted;
  return static_cast<uint64_t>(std::countr_zero(behind != 0 ? behind : open));
}
uint64_t with_taken(uint64_t claim, uint64_t chunk, uint64_t chunks) {
  return has_bits(chunks) ? claim | uint64_t{1} << chunk : claim + 1;
}

// The first piece of a chunk is a grain, some ten microseconds of work, or one unit if that takes
// longer; pieces grow until one takes `long_piece`.
constexpr auto long_piece = std::chrono::milliseconds(40);

// What waits for so long, while no thread takes anything, gets a spare thread.
constexpr auto spare_patience = std::chrono::milliseconds(10);
// A spare thread looks at the queue for so long after it was last needed, then sleeps; later it
// ends.
constexpr int spare_looks = 100;
constexpr auto spare_life = std::chrono::seconds(10);
constexpr size_t most_spares = 64;

inline void pause() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#endif
}

// The range in pieces, with the question between them whether anybody still wants the rest.
template <class Body>
void run_in_pieces(Body body, void* self, int64_t begin, int64_t end, int64_t grain) {
  if (StepEnd::of_thread() == nullptr) return body(self, begin, end);
  int64_t piece = std::min(std::max<int64_t>(grain, 1), end - begin);
  while (begin < end) {
    StepEnd::ask();
    if (end - begin <= piece) return body(self, begin, end);
    const auto start = Clock::now();
    body(self, begin, begin + piece);
    begin += piece;
    const auto taken = Clock::now() - start;
    const int64_t growth = taken < long_piece / 16 ? 8 : taken < long_piece ? 2 : 1;
    piece *= std::min(growth, 1 + (end - begin) / piece);
  }
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
  // Delegates, so that the destructor ends the workers that have started if one cannot start.
  explicit State(int threads) : State(threads, WithoutWorkers{}) {
    for (int i = 1; i < threads; ++i) workers_.emplace_back([this, i] { work(i); });
  }

  ~State() {
    {
      std::lock_guard lock(mutex_);
      is_stopping_ = true;
    }
    wake_.notify_all();
    spare_wake_.notify_all();
    for (std::thread& worker : workers_) worker.join();
    for (std::thread& spare : spares_) spare.join();  // none is added any more
    if (ended_spare_.joinable()) ended_spare_.join();
  }

  int threads() const { return threads_; }

  void schedule(std::function<void()> work_item) {
    const WorkSource::Id source = WorkSource::of_thread();
    std::lock_guard lock(mutex_);
    lines_.add(source, std::move(work_item));
    unfinished_.fetch_add(1, std::memory_order_relaxed);
    queued_.fetch_add(1, std::memory_order_seq_cst);
    if (workers_.empty()) workers_.emplace_back([this] { work(1); });
    if (source != WorkSource::none) watch();
    // Under the lock: the work may be what its owner waits for before the pool is destroyed.
    wake_.notify_one();
  }

  void wait_until_idle() {
    std::unique_lock lock(mutex_);
    idle_.wait(lock, [this] { return unfinished_.load(std::memory_order_acquire) == 0; });
  }

  void run_loop(int64_t n, int64_t grain, LoopBody body, void* self) {
    if (threads_ == 0 || is_loop_taken_.exchange(true, std::memory_order_acquire))
      return run_in_pieces(body, self, 0, n, grain);
    const auto start = Clock::now();
    if (start < alone_until_) {
      is_loop_taken_.store(false, std::memory_order_release);
      return run_in_pieces(body, self, 0, n, grain);
    }
    const auto chunks = static_cast<uint64_t>(std::clamp<int64_t>(
        n / std::max<int64_t>(grain, 1), 1, int64_t{threads_} * chunks_per_thread));

    // Nobody holds a chunk of the last loop; a late thread may still read the fields, but its claim
    // fails.
    loop_.body.store(body, std::memory_order_release);
    loop_.self.store(self, std::memory_order_release);
    loop_.n.store(n, std::memory_order_release);
    loop_.grain.store(grain, std::memory_order_release);
    loop_.end.store(StepEnd::of_thread(), std::memory_order_release);
    loop_.chunks.store(chunks, std::memory_order_release);
    loop_.done.store(0, std::memory_order_relaxed);
    ++generation_;
    claim_.store(generation_ << chunk_bits, std::memory_order_seq_cst);
    if (sleepers_.load(std::memory_order_seq_cst) > 0) {
      { std::lock_guard lock(mutex_); }
      wake_.notify_all();
    }

    const uint32_t done = take_chunks(0);
    const auto end = Clock::now();
    wait_for_chunks(chunks);
    const auto wait = Clock::now() - end;
    if (wait > least_patience && wait > (end - start) / std::max(1U, done) * patience_in_chunks)
      alone_until_ = end + (1 + times_alone) * wait;
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
  struct WithoutWorkers {};
  State(int threads, WithoutWorkers) : threads_(threads) {
    check(threads >= 0 && threads < 1024, "a thread pool of ", threads,
          " threads was asked for; it must have 1 to 1023");
  }

  struct Loop {
    std::atomic<LoopBody> body{nullptr};
    std::atomic<void*> self{nullptr};
    std::atomic<int64_t> n{0}, grain{1};
    std::atomic<const StepEnd::Flag*> end{nullptr};
    std::atomic<uint64_t> chunks{0};
    alignas(64) std::atomic<uint32_t> done{0};
    std::atomic<bool> has_failed{false};
    std::mutex error_mutex;
    std::exception_ptr error;
  };

  bool has_open_chunk() const {
    const uint64_t claim = claim_.load(std::memory_order_seq_cst);
    return is_any_open(claim, loop_.chunks.load(std::memory_order_acquire));
  }

  // Run by the caller, thread 0, and every pool thread that is awake. Returns the number of chunks
  // this thread did.
  uint32_t take_chunks(int thread) {
    uint32_t done = 0;
    uint64_t claim = claim_.load(std::memory_order_acquire);
    for (;;) {
      const LoopBody body = loop_.body.load(std::memory_order_acquire);
      void* const self = loop_.self.load(std::memory_order_acquire);
      const int64_t n = loop_.n.load(std::memory_order_acquire);
      const int64_t grain = loop_.grain.load(std::memory_order_acquire);
      const StepEnd::Flag* const step_end = loop_.end.load(std::memory_order_acquire);
      const uint64_t chunks = loop_.chunks.load(std::memory_order_acquire);
      if (!is_any_open(claim, chunks)) break;
      const uint64_t own = static_cast<uint64_t>(thread) * chunks / static_cast<uint64_t>(threads_),
                     chunk = open_chunk(claim, chunks, own);
      // Succeeds only if no other loop began since: then what was read above is this loop's.
      if (!claim_.compare_exchange_weak(claim, with_taken(claim, chunk, chunks),
                                        std::memory_order_acq_rel, std::memory_order_acquire))
        continue;
      const StepEnd::Scope scope(step_end);
      run_chunk(body, self, part(n, chunk, chunks), part(n, chunk + 1, chunks), grain);
      ++done;
      // Held until it is reported: the loop, and its generation, cannot end before.
      claim = claim_.load(std::memory_order_acquire);
      if (!is_any_open(claim, chunks)) break;
    }
    if (done > 0) finish(done);
    return done;
  }

  static int64_t part(int64_t n, uint64_t chunk, uint64_t chunks) {
    const auto c = static_cast<int64_t>(chunk), of = static_cast<int64_t>(chunks);
    return n / of * c + n % of * c / of;
  }

  void run_chunk(LoopBody body, void* self, int64_t begin, int64_t end, int64_t grain) {
    if (loop_.has_failed.load(std::memory_order_relaxed)) return;
    try {
      run_in_pieces(body, self, begin, end, grain);
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

  void work(int thread) {
    const FlushDenormals flush;
    std::chrono::nanoseconds patience = short_spin;
    for (;;) {
      if (has_open_chunk() && take_chunks(thread) > 0) patience = long_spin;
      const auto has_work = [&] {
        return has_open_chunk() || queued_.load(std::memory_order_seq_cst) > 0;
      };
      if (!spin(patience, has_work)) {
        patience = short_spin;
        std::unique_lock lock(mutex_);
        sleepers_.fetch_add(1, std::memory_order_seq_cst);
        wake_.wait(lock, [&] { return has_work() || is_stopping_; });
        sleepers_.fetch_sub(1, std::memory_order_relaxed);
        if (is_stopping_ && lines_.are_empty()) return;
      }
      if (queued_.load(std::memory_order_relaxed) > 0) {
        std::unique_lock lock(mutex_);
        if (WorkLines::Line* line = lines_.next(false)) run_first(*line, lock);
      }
    }
  }

  // The first piece of work of the line, without the lock, which is held before and after.
  void run_first(WorkLines::Line& line, std::unique_lock<std::mutex>& lock) {
    std::function<void()> item = lines_.take(line);
    queued_.fetch_sub(1, std::memory_order_relaxed);
    lock.unlock();
    {
      const WorkSource::Scope scope(line.source);
      item();
      item = nullptr;
    }
    lock.lock();
    lines_.ended(line);
    if (unfinished_.fetch_sub(1, std::memory_order_acq_rel) == 1) idle_.notify_all();
  }

  // ---- Spare threads: while something is in the queue, one of them watches it ----

  // With the lock held.
  void watch() {
    if (is_watched_ || is_stopping_) return;
    if (sleeping_spares_ > 0) {
      is_watched_ = is_watcher_called_ = true;
      return spare_wake_.notify_one();
    }
    if (spares_.size() >= most_spares) return;
    const auto self = spares_.emplace(spares_.end());
    try {
      *self = std::thread([this, self] { serve_as_spare(self); });
      is_watched_ = true;
    } catch (const std::system_error&) {  // the system has no more threads: then without
      spares_.erase(self);
    }
  }

  // Comes as the watcher.
  void serve_as_spare(std::list<std::thread>::iterator self) {
    std::unique_lock lock(mutex_);
    while (!is_stopping_) {
      WorkLines::Line* const line = watch_queue(lock);
      is_watched_ = false;
      if (line != nullptr) {
        if (queued_.load(std::memory_order_relaxed) > 1) watch();  // another one
        run_first(*line, lock);
        if (!is_watched_ && !lines_.are_empty()) {
          is_watched_ = true;
          continue;
        }
      }
      ++sleeping_spares_;
      spare_wake_.wait_for(lock, spare_life, [&] { return is_watcher_called_ || is_stopping_; });
      --sleeping_spares_;
      if (std::exchange(is_watcher_called_, false) || is_stopping_) continue;
      std::thread before = std::exchange(ended_spare_, std::move(*self));
      spares_.erase(self);
      lock.unlock();
      if (before.joinable()) before.join();
      return;
    }
  }

  // The line whose work a spare thread is to do; null when there has been none for some time.
  WorkLines::Line* watch_queue(std::unique_lock<std::mutex>& lock) {
    bool was_waiting = false;
    size_t taken = lines_.taken();
    for (int looks = spare_looks; looks > 0; --looks) {
      spare_wake_.wait_for(lock, spare_patience, [&] { return is_stopping_; });
      if (is_stopping_) return nullptr;
      const bool is_waiting = !lines_.are_empty();
      const bool nobody_comes = std::exchange(taken, lines_.taken()) == lines_.taken();
      if (is_waiting) looks = spare_looks;
      if (std::exchange(was_waiting, is_waiting) && is_waiting && nobody_comes) {
        if (WorkLines::Line* line = lines_.next(true)) return line;
      }
    }
    return nullptr;
  }

  const int threads_;
  Loop loop_;
  // Generation, chunk. Closed until a loop's fields are all there.
  alignas(64) std::atomic<uint64_t> claim_{chunk_mask};
  alignas(64) std::atomic<bool> is_loop_taken_{false};
  uint64_t generation_ = 0;                           // of the loop's owner
  std::chrono::nanoseconds caller_spin_ = long_spin;  // likewise
  Clock::time_point alone_until_;                     // likewise
  std::atomic<bool> is_caller_asleep_{false};
  std::atomic<int> sleepers_{0};
  std::atomic<size_t> queued_{0}, unfinished_{0};  // scheduled: and not begun, and not ended

  std::mutex mutex_;  // guards what follows, and sleeping
  std::condition_variable wake_, finished_, idle_, spare_wake_;
  WorkLines lines_;
  std::vector<std::thread> workers_;
  std::list<std::thread> spares_;
  std::thread ended_spare_;  // the last
  int sleeping_spares_ = 0;
  bool is_watched_ = false, is_watcher_called_ = false;
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
