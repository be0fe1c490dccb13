// A step that may end on another thread, and the wait for it.
#pragma once

#include <chrono>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <vector>

#include "core/tensor.h"
#include "runtime/registered_graph.h"

namespace leat {

// Shared by the waiter and the step, so that nothing dangles when a waiter gives up.
class PendingStep {
 public:
  int64_t id = 0;
  std::vector<Tensor> feeds, fetches;
  std::shared_ptr<const void> keeps;  // keeps alive what the running step needs

  void begin(int64_t step_id);
  void finish(const Status& status);
  // Waits until the step has ended; throws its error. After `timeout` it cancels the step and
  // throws DEADLINE_EXCEEDED with what the step waited for.
  void wait(RegisteredGraph& graph, std::chrono::milliseconds timeout);

 private:
  std::mutex mutex_;
  std::condition_variable ended_;
  bool is_done_ = false;
  Status status_;
};

}  // namespace leat
