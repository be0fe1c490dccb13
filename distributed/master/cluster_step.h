// One step of a cluster: the master makes each task run its part, collects the fetches, and forms
// one outcome from the answers. Life of a step: start() sends RunGraph to all tasks, its own last.
// Tensors go from task to task without the master. Each task answers when its part has ended. The
// first error that is not derived from another one is the step's. It aborts the other tasks, whose
// answers say what they were waiting for.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "distributed/master/cluster_program.h"

namespace leat {

struct StepOutcome {
  Status status;
  std::vector<Tensor> fetches;  // in the order asked for
  RunMetadata metadata;
  std::vector<TaskName>
      restarted;  // tasks that no longer know the program: it must be registered anew
};

struct StepTimes {
  WorkerClient::Deadline deadline;   // the step ends by then
  WorkerClient::Deadline answer_by;  // the client stops listening: somewhat later
  std::chrono::nanoseconds limit{};  // what it asked for, for messages
};

// Thread-safe.
class ClusterStep : public std::enable_shared_from_this<ClusterStep> {
 public:
  struct Request {
    std::map<std::string, Tensor, std::less<>> feeds;  // normalised names
    std::vector<std::string> fetches;                  // normalised, may repeat
    bool trace = false;
    bool any_size = false;  // the client takes fetches of any size
    StepTimes times;
  };
  using Done = std::function<void(StepOutcome)>;

  ClusterStep(std::shared_ptr<const Peers> peers, std::shared_ptr<const ClusterProgram> program,
              Request request, Done done);

  void start();
  // Ends the step on every task with `status`, if it has not ended. The first error wins.
  void fail(const Status& status);
  // A task is lost. If it has a part in this step, the step ends with an error that says what it
  // owed.
  void task_lost(const TaskName& task, const std::string& why);

 private:
  void declare_lost(const TaskName& task, const std::string& why);
  struct PartState {
    bool has_ended = false;
    bool has_answered = false;  // it ended, or reported its activity when aborted
    RunGraphResult result;
  };
  void part_ended(size_t index, const Status& call, RunGraphResult result);
  void record_error(Status status, const TaskName* lost);
  void abort_others();
  std::chrono::steady_clock::time_point abort_deadline() const;
  void finish();
  std::string owed_by(const TaskName& task) const;
  std::string owed_targets_of(const TaskName& task) const;
  std::string all_activity() const;

  const std::shared_ptr<const Peers> peers_;
  const std::shared_ptr<const ClusterProgram> program_;
  Request request_;
  const int64_t id_;
  std::mutex mutex_;
  Done done_;
  std::vector<PartState> parts_;
  size_t running_ = 0;
  Status status_;
  std::optional<TaskName> lost_;
  std::vector<TaskName> restarted_;
  bool is_deadline_ = false;
  bool is_aborting_ = false;
  bool is_finished_ = false;
  Timer::Id deadline_timer_ = 0, grace_timer_ = 0;
};

}  // namespace leat
