// A step of a client's session, from its request on: its program is looked up or built, then it
// runs.
#pragma once

#include <memory>
#include <mutex>

#include "distributed/master/cluster_step.h"

namespace leat {

// Thread-safe.
class SessionStep {
 public:
  // `end` is called once, by end() or by the step passed to begin().
  explicit SessionStep(ClusterStep::Done end) : end_(std::move(end)) {}

  // The program is ready. False: the step was cancelled while it was built.
  bool begin(std::shared_ptr<ClusterStep> step);
  void cancel(const Status& status);
  void task_lost(const TaskName& task, const std::string& why);
  void end(StepOutcome outcome);  // the first call counts

 private:
  std::shared_ptr<ClusterStep> begun() const;

  mutable std::mutex mutex_;
  ClusterStep::Done end_;  // empty after the end
  std::shared_ptr<ClusterStep> step_;
};

}  // namespace leat
