// A worker's memory of steps that have ended on it: that its part is done, and whether the reply to
// the master is still on its way. It answers a master that asks late.
#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "distributed/recent_table.h"
#include "distributed/worker/worker_client.h"

namespace leat {

// Thread-safe.
class WorkerReplies : public std::enable_shared_from_this<WorkerReplies> {
 public:
  WorkerReplies();

  // The step has ended with this result, which goes to its master.
  void add(int64_t step, const RunGraphResult& result);
  // Until the handle goes, the reply is on its way to another process. Null for a small one.
  [[nodiscard]] std::shared_ptr<const void> leaves(int64_t step, const std::string& session);
  // Nullopt if the step has not ended here, or so long ago that it is forgotten.
  std::optional<StepActivity> activity(int64_t step) const;
  // The steps whose replies are on their way, without their masters.
  std::vector<RunningStep> leaving() const;

 private:
  struct Reply {
    size_t bytes = 0;
    bool has_failed = false;
    std::chrono::steady_clock::time_point since;
  };
  static StepActivity activity_of(const Reply& reply, bool is_leaving);

  mutable std::mutex mutex_;
  RecentTable<Reply> replies_;
  std::multimap<int64_t, std::string> leaving_;  // steps, sessions
};

// The size of a result's tensors and their names.
size_t bytes_of(const RunGraphResult& result);

}  // namespace leat
