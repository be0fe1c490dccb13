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

// Shared by the waiter and the step, so that a waiter who gives up leaves nothing dangling.
class PendingStep {
 public:
  int64_t id = 0;
  std::vector<Tensor> feeds, fetches;
  std::shared_ptr<const void> keeps;  // what the step needs as long as it runs

  void begin(int64_t step_id);
  void finish(const Status& status);
  // Until the step has ended, or `timeout` has passed: then the step is cancelled, and the error is
  // DEADLINE_EXCEEDED with what it waited for. Throws the step's error.
  void wait(RegisteredGraph& graph, std::chrono::milliseconds timeout);

 private:
  std::mutex mutex_;
  std::condition_variable ended_;
  bool is_done_ = false;
  Status status_;
};

}  // namespace leat
