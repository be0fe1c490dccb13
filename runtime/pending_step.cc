#include "runtime/pending_step.h"

namespace leat {
namespace {

// A cancelled step ends at its next segment border.
constexpr auto patience = std::chrono::seconds(60);

}  // namespace

void PendingStep::begin(int64_t step_id) {
  id = step_id;
  const std::lock_guard lock(mutex_);
  is_done_ = false;
}

void PendingStep::finish(const Status& status) {
  const std::lock_guard lock(mutex_);
  status_ = status;
  is_done_ = true;
  ended_.notify_all();
}

void PendingStep::wait(RegisteredGraph& graph, std::chrono::milliseconds timeout) {
  const auto is_done = [&] { return is_done_; };
  std::unique_lock lock(mutex_);
  if (!ended_.wait_for(lock, timeout, is_done)) {
    lock.unlock();
    std::string text = concat("the step did not end within ", timeout.count(), " ms");
    for (const StepActivity& each : graph.activity(id)) text += "\n  it " + each.to_string();
    graph.cancel(id, {Code::deadline_exceeded, text});
    lock.lock();
    if (!ended_.wait_for(lock, patience, is_done)) {
      fail(Code::deadline_exceeded, text, "\n  and could not be cancelled");
    }
  }
  throw_if_error(status_);
}

}  // namespace leat
