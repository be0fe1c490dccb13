#include "tests/support/cuda/block.h"

#include <algorithm>
#include <atomic>
#include <deque>
#include <numeric>

#include "tests/support/cuda/kernel_name.h"

__thread uint3 threadIdx, blockIdx, blockDim, gridDim;

namespace cuda_on_host {
namespace {

constexpr int lanes = 32;
std::atomic<uint64_t> order_seed{0};

std::string text(const Site& site) {
  return std::string(site.file) + ":" + std::to_string(site.line);
}

// The numbers below n, each once, in an order that a seed decides.
class Order {
 public:
  Order(uint64_t n, uint64_t seed) : n_(n) {
    if (seed == 0 || n < 2) return;
    step_ = (seed * 0x9e3779b97f4a7c15u >> 20) % n;
    while (step_ == 0 || std::gcd(step_, n) != 1) step_ = (step_ + 1) % n;
    first_ = (seed * 0xd1342543de82ef95u >> 24) % n;
  }
  uint64_t operator[](uint64_t i) const {
    return static_cast<uint64_t>((static_cast<unsigned __int128>(i) * step_ + first_) % n_);
  }

 private:
  uint64_t n_, step_ = 1, first_ = 0;
};

enum class State : uint8_t { not_started, running, at_barrier, in_warp_operation, finished };

// A CUDA thread.
struct Thread {
  State state = State::not_started;
  Fiber* fiber = nullptr;
  Site site = {};
  // In a warp operation: what it gives and asks for, then what it gets.
  Shuffle shuffle = Shuffle::ballot;
  unsigned mask = 0;
  uint64_t value = 0;
  int operand = 0, width = lanes;
};

// One for each thread of the system that runs blocks. Keeps its fibers.
class Runner {
 public:
  std::string run(const Launch& launch);

  int barrier(Vote vote, bool predicate, Site site);
  uint64_t warp_operation(Shuffle shuffle, unsigned mask, uint64_t value, int operand, int width,
                          Site site);
  unsigned active_lanes() const;

 private:
  void run_block();
  void carry();  // what a fiber does
  void place(unsigned number);
  void finish();
  void release_barrier();
  bool release_warp(unsigned first, const Thread& like);
  void wait(State state);
  void return_to_scheduler();
  // Takes the text along: nothing on the stack that it leaves is destroyed.
  [[noreturn]] void fail(std::string& what);
  std::string where_they_are() const;

  Thread& self() { return threads_[current_]; }

  const Launch* launch_ = nullptr;
  Order thread_order_{1, 0};
  Fiber scheduler_;
  std::vector<std::unique_ptr<Fiber>> fibers_;
  std::vector<Fiber*> idle_;
  Fiber* running_ = nullptr;

  std::vector<Thread> threads_;
  std::deque<unsigned> ready_;  // have waited, may go on
  unsigned current_ = 0, started_ = 0, finished_ = 0;

  unsigned at_barrier_ = 0;
  Site barrier_site_ = {};
  Vote barrier_vote_ = Vote::none;
  unsigned votes_ = 0;
  int barrier_result_ = 0;

  std::string failure_;
};

Runner& this_runner() {
  static thread_local Runner runner;
  return runner;
}

std::string Runner::run(const Launch& launch) {
  launch_ = &launch;
  failure_.clear();
  const dim3& grid = launch.grid;
  blockDim = {launch.block.x, launch.block.y, launch.block.z};
  gridDim = {grid.x, grid.y, grid.z};
  threads_.resize(static_cast<size_t>(launch.block.x) * launch.block.y * launch.block.z);
  const uint64_t seed = order_seed.load();
  thread_order_ = Order(threads_.size(), seed * 31);
  const uint64_t blocks = static_cast<uint64_t>(grid.x) * grid.y * grid.z;
  const Order order(blocks, seed);
  for (uint64_t i = 0; i < blocks && failure_.empty(); ++i) {
    const uint64_t b = order[i];
    blockIdx = {static_cast<unsigned>(b % grid.x), static_cast<unsigned>(b / grid.x % grid.y),
                static_cast<unsigned>(b / grid.x / grid.y)};
    run_block();
  }
  if (failure_.empty()) return "";
  ready_.clear();
  at_barrier_ = 0;
  idle_.clear();
  fibers_.clear();  // threads still wait on them
  return kernel_name(launch.kernel) + ", block " + std::to_string(blockIdx.x) + "," +
         std::to_string(blockIdx.y) + "," + std::to_string(blockIdx.z) + ": " + failure_;
}

void Runner::run_block() {
  std::fill(threads_.begin(), threads_.end(), Thread{});
  started_ = finished_ = votes_ = 0;
  while (finished_ < threads_.size() && failure_.empty()) {
    if (!ready_.empty()) {
      current_ = ready_.front();
      ready_.pop_front();
      self().state = State::running;
      place(current_);
      running_ = self().fiber;
    } else if (started_ < threads_.size()) {
      if (idle_.empty()) {
        fibers_.push_back(std::make_unique<Fiber>(
            [](void* runner) { static_cast<Runner*>(runner)->carry(); }, this));
        idle_.push_back(fibers_.back().get());
      }
      running_ = idle_.back();
      idle_.pop_back();
    } else {
      failure_ = "its threads wait for each other for ever: " + where_they_are();
      return;
    }
    scheduler_.switch_to(*running_);
  }
}

void Runner::carry() {
  while (true) {
    while (started_ < threads_.size() && ready_.empty()) {
      current_ = static_cast<unsigned>(thread_order_[started_++]);
      self().state = State::running;
      self().fiber = running_;
      place(current_);
      launch_->call(launch_->kernel, launch_->arguments.get());
      finish();
    }
    idle_.push_back(running_);
    return_to_scheduler();
  }
}

void Runner::place(unsigned number) {
  const dim3& block = launch_->block;
  threadIdx = {number % block.x, number / block.x % block.y, number / block.x / block.y};
}

void Runner::return_to_scheduler() { running_->switch_to(scheduler_); }

void Runner::wait(State state) {
  self().state = state;
  return_to_scheduler();
}

void Runner::fail(std::string& what) {
  failure_.swap(what);
  return_to_scheduler();
  __builtin_unreachable();  // its fiber is destroyed
}

void Runner::finish() {
  self().state = State::finished;
  ++finished_;
  if (at_barrier_ > 0 && at_barrier_ == threads_.size() - finished_) release_barrier();
  const unsigned first = current_ / lanes * lanes;
  for (unsigned t = first; t < first + lanes && t < threads_.size(); ++t) {
    if (threads_[t].state == State::in_warp_operation &&
        (threads_[t].mask >> current_ % lanes & 1)) {
      std::string what = "thread " + std::to_string(t) + " waits at " + text(threads_[t].site) +
                         " for thread " + std::to_string(current_) + ", which has left the kernel";
      fail(what);
    }
  }
}

// All that have not left the kernel must reach the same barrier.
int Runner::barrier(Vote vote, bool predicate, Site site) {
  if (at_barrier_ == 0) {
    barrier_site_ = self().site = site;
    barrier_vote_ = vote;
  } else if (site.line != barrier_site_.line || vote != barrier_vote_ ||
             std::string(site.file) != barrier_site_.file) {
    std::string what = "thread " + std::to_string(current_) + " is at the barrier of " +
                       text(site) + " and others of its block at that of " + text(barrier_site_);
    fail(what);
  }
  self().site = site;
  if (predicate) ++votes_;
  ++at_barrier_;
  if (at_barrier_ == threads_.size() - finished_) {
    self().state = State::running;
    release_barrier();
  } else {
    wait(State::at_barrier);
  }
  return barrier_result_;
}

void Runner::release_barrier() {
  switch (barrier_vote_) {
    case Vote::none:
      break;
    case Vote::any:
      barrier_result_ = votes_ > 0 ? 1 : 0;
      break;
    case Vote::all:
      barrier_result_ = votes_ == at_barrier_ ? 1 : 0;
      break;
    case Vote::count:
      barrier_result_ = static_cast<int>(votes_);
  }
  at_barrier_ = votes_ = 0;
  for (unsigned i = 0; i < threads_.size(); ++i) {
    const unsigned t = static_cast<unsigned>(thread_order_[i]);
    if (threads_[t].state == State::at_barrier) {
      threads_[t].state = State::running;
      ready_.push_back(t);
    }
  }
}

unsigned Runner::active_lanes() const {
  const unsigned first = current_ / lanes * lanes;
  unsigned mask = 0;
  for (unsigned t = first; t < first + lanes && t < threads_.size(); ++t) {
    if (threads_[t].state != State::finished) mask |= 1u << (t - first);
  }
  return mask;
}

uint64_t Runner::warp_operation(Shuffle shuffle, unsigned mask, uint64_t value, int operand,
                                int width, Site site) {
  const unsigned first = current_ / lanes * lanes, lane = current_ % lanes;
  if ((mask >> lane & 1) == 0) {
    std::string what = "thread " + std::to_string(current_) +
                       " is not in the mask of its own warp operation at " + text(site);
    fail(what);
  }
  if (width < 1 || width > lanes || (width & (width - 1)) != 0) {
    std::string what = "a shuffle of width " + std::to_string(width) + " at " + text(site);
    fail(what);
  }
  for (unsigned other = 0; other < lanes; ++other) {
    if ((mask >> other & 1) == 0) continue;
    const unsigned t = first + other;
    if (t >= threads_.size() || threads_[t].state == State::finished) {
      std::string what = "thread " + std::to_string(current_) + " names lane " +
                         std::to_string(other) + " in the mask at " + text(site) +
                         ", where no thread is or has left the kernel";
      fail(what);
    }
    if (threads_[t].state == State::in_warp_operation &&
        (threads_[t].mask != mask || threads_[t].shuffle != shuffle ||
         threads_[t].site.line != site.line) &&
        (threads_[t].mask >> lane & 1)) {
      std::string what = "thread " + std::to_string(current_) + " is in the warp operation of " +
                         text(site) + " and thread " + std::to_string(t) + " in that of " +
                         text(threads_[t].site);
      fail(what);
    }
  }
  Thread& me = self();
  me.site = site;
  me.shuffle = shuffle;
  me.mask = mask;
  me.value = value;
  me.operand = operand;
  me.width = width;
  me.state = State::in_warp_operation;
  if (release_warp(first, me)) {
    me.state = State::running;
  } else {
    return_to_scheduler();
  }
  return me.value;
}

// If all lanes of the mask are here: gives each its value and lets it go on, the last one at once.
bool Runner::release_warp(unsigned first, const Thread& like) {
  const unsigned mask = like.mask;
  uint64_t given[lanes] = {};
  unsigned ballot = 0;
  for (int lane = 0; lane < lanes; ++lane) {
    if ((mask >> lane & 1) == 0) continue;
    const Thread& thread = threads_[first + lane];
    if (thread.state != State::in_warp_operation || thread.mask != mask) return false;
    given[lane] = thread.value;
    if (thread.value != 0) ballot |= 1u << lane;
  }
  for (int lane = 0; lane < lanes; ++lane) {
    if ((mask >> lane & 1) == 0) continue;
    Thread& thread = threads_[first + lane];
    const int begin = lane / thread.width * thread.width, end = begin + thread.width;
    int from = lane;
    switch (thread.shuffle) {
      case Shuffle::index:
        from = begin + (thread.operand & (thread.width - 1));
        break;
      case Shuffle::up:
        from = lane - thread.operand >= begin ? lane - thread.operand : lane;
        break;
      case Shuffle::down:
        from = lane + thread.operand < end ? lane + thread.operand : lane;
        break;
      case Shuffle::exclusive_or:
        from = (lane ^ thread.operand) < end ? lane ^ thread.operand : lane;
        break;
      case Shuffle::ballot:
        break;
    }
    if ((mask >> from & 1) == 0) {
      std::string what = "lane " + std::to_string(lane) + " reads lane " + std::to_string(from) +
                         " at " + text(thread.site) + ", which is not in the mask";
      fail(what);
    }
    thread.value = thread.shuffle == Shuffle::ballot ? ballot : given[from];
    thread.state = State::running;
    if (first + lane != current_) ready_.push_back(first + lane);
  }
  return true;
}

std::string Runner::where_they_are() const {
  unsigned barrier = 0, warp = 0;
  Site at = {}, in = {};
  for (const Thread& thread : threads_) {
    if (thread.state == State::at_barrier) ++barrier, at = thread.site;
    if (thread.state == State::in_warp_operation) ++warp, in = thread.site;
  }
  std::string out;
  if (barrier > 0) out += std::to_string(barrier) + " at the barrier of " + text(at);
  if (warp > 0)
    out +=
        (out.empty() ? "" : ", ") + std::to_string(warp) + " in the warp operation of " + text(in);
  return out + ", " + std::to_string(finished_) + " have left the kernel";
}

}  // namespace

void set_order(uint64_t seed) { order_seed = seed; }
std::string describe(const Launch& launch) { return kernel_name(launch.kernel); }
std::string run(const Launch& launch) { return this_runner().run(launch); }
int barrier(Vote vote, bool predicate, Site site) {
  return this_runner().barrier(vote, predicate, site);
}
uint64_t warp_operation(Shuffle shuffle, unsigned mask, uint64_t value, int operand, int width,
                        Site site) {
  return this_runner().warp_operation(shuffle, mask, value, operand, width, site);
}
unsigned active_lanes() { return this_runner().active_lanes(); }

}  // namespace cuda_on_host
