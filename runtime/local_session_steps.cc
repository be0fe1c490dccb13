// run_steps() of the local session: several steps in flight.
#include <deque>
#include <utility>

#include "runtime/local_rendezvous.h"
#include "runtime/local_session.h"
#include "runtime/pending_step.h"
#include "runtime/run_steps.h"

namespace leat {
namespace {

// Runs work items one after the other on a thread of the pool. The destructor waits for them.
class SerialQueue {
 public:
  explicit SerialQueue(ThreadPool& pool) : pool_(pool) {}
  ~SerialQueue() {
    std::unique_lock lock(mutex_);
    idle_.wait(lock, [&] { return !is_running_; });
  }
  SerialQueue(const SerialQueue&) = delete;

  void push(std::function<void()> work) {
    const std::lock_guard lock(mutex_);
    work_.push_back(std::move(work));
    if (!std::exchange(is_running_, true)) pool_.schedule([this] { run(); });
  }

 private:
  void run() {
    for (;;) {
      std::function<void()> work;
      {
        const std::lock_guard lock(mutex_);
        if (work_.empty()) {
          is_running_ = false;
          idle_.notify_all();
          return;
        }
        work = std::move(work_.front());
        work_.pop_front();
      }
      work();
    }
  }

  ThreadPool& pool_;
  std::mutex mutex_;
  std::condition_variable idle_;
  std::deque<std::function<void()>> work_;
  bool is_running_ = false;
};

}  // namespace

void LocalSession::run_steps(CallableHandle handle, int64_t steps, const StepFeeds& feed,
                             const StepFetches& result, int in_flight) {
  check(in_flight >= 1, "at least one step must be in flight, not ", in_flight);
  if (in_flight == 1) return SessionInterface::run_steps(handle, steps, feed, result, 1);
  const Running running(*this);
  const std::shared_ptr<const Prepared> prepared = callable(handle);
  RegisteredGraph& graph = *prepared->graph;

  // Steps of one segment run in order on a thread of the pool, beside the caller's feeding. Others
  // begin here and overlap each other.
  SerialQueue queue(pool_);
  const auto begin = [&](const std::shared_ptr<PendingStep>& step) {
    if (!graph.runs_on_caller()) {
      graph.start(*prepared->call, step->id, step->feeds,
                  std::make_shared<LocalRendezvous>(prepared->edges), &step->fetches,
                  [step](const Status& status) { step->finish(status); });
      cancel_if_closed(graph, step->id);
      return;
    }
    queue.push([&graph, &call = *prepared->call, step] {
      Status status;
      try {
        graph.run_here(call, step->feeds, step->fetches);
      } catch (...) {
        status = status_of_current_exception();
      }
      step->finish(status);
    });
  };

  std::deque<std::shared_ptr<PendingStep>> pending, free;
  std::exception_ptr error;
  int64_t begun = 0, ended = 0;
  const auto begin_next = [&] {
    if (free.empty()) free.push_back(std::make_shared<PendingStep>());
    const std::shared_ptr<PendingStep> step = free.front();
    step->begin(next_step_.fetch_add(1));
    step->keeps = prepared;
    step->feeds.clear();
    feed(begun, step->feeds);
    check_feeds(prepared->spelling, step->feeds.size());
    ++begun;
    free.pop_front();
    pending.push_back(step);
    begin(step);
  };
  const auto end_first = [&] {
    const std::shared_ptr<PendingStep> step = pending.front();
    pending.pop_front();
    try {
      step->wait(graph, timeout_);
    } catch (...) {
      rethrow_of_step(begun - std::ssize(pending) - 1);
    }
    if (!error) result(ended++, step->fetches);
    free.push_back(step);
  };
  while (error ? !pending.empty() : ended < steps) {
    try {
      while (!error && begun < steps && std::ssize(pending) < in_flight) begin_next();
      if (!pending.empty()) end_first();
    } catch (...) {
      if (!error) error = std::current_exception();
    }
  }
  if (error) std::rethrow_exception(error);
}

}  // namespace leat
