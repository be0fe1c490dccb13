#include "distributed/master/session_step.h"

namespace leat {

bool SessionStep::begin(std::shared_ptr<ClusterStep> step) {
  std::lock_guard lock(mutex_);
  if (end_) step_ = std::move(step);
  return end_ != nullptr;
}

void SessionStep::cancel(const Status& status) {
  if (const auto step = begun()) return step->fail(status);
  end({.status = status});
}

void SessionStep::task_lost(const TaskName& task, const std::string& why) {
  if (const auto step = begun()) step->task_lost(task, why);
}

void SessionStep::end(StepOutcome outcome) {
  ClusterStep::Done end;
  {
    std::lock_guard lock(mutex_);
    end.swap(end_);
    step_ = nullptr;
  }
  if (end) end(std::move(outcome));
}

std::shared_ptr<ClusterStep> SessionStep::begun() const {
  std::lock_guard lock(mutex_);
  return step_;
}

}  // namespace leat
