// The worker of a task: holds the partitions that masters registered, and runs them. It knows
// nothing of the wire; how its steps exchange tensors with other tasks is passed in.
#pragma once

#include <memory>

#include "core/device.h"
#include "core/rendezvous.h"
#include "core/state/variable.h"
#include "distributed/wait_list.h"
#include "distributed/worker/worker_client.h"

namespace leat {

// How a task's steps exchange tensors with those of other tasks (rendezvous_router.h).
struct StepExchange {
  // Opens the rendezvous of a step for these edges. Values may have come before.
  std::function<std::shared_ptr<Rendezvous>(
      int64_t step, const std::shared_ptr<const std::vector<CutEdge>>& edges)>
      open;
  // The step has ended here: drops what still arrives for it.
  std::function<void(int64_t step)> close;
  // Calls `ready` when this task has met the tasks at the other ends of these edges, or has waited
  // long enough for those it has not met. May be empty.
  std::function<void(const std::shared_ptr<const std::vector<CutEdge>>& edges,
                     std::function<void()> ready)>
      meet;
  // Bytes of tensors sent to other tasks. May be empty.
  std::function<uint64_t()> sent_bytes;
  // The tasks that this one is connected to. May be empty.
  std::function<std::vector<PeerLink>()> links;
};

struct WorkerOptions {
  TaskName task;
  std::string cluster_id;
  uint64_t incarnation = 0;  // random, not 0; differs after every start of the process
  std::vector<Device*> devices;
  ThreadPool* pool = nullptr;
  StepExchange exchange;
  const WaitList* waits = nullptr;  // the task's: part of its activity
};

// Thread-safe. register_graph() and run_graph() with another incarnation than the worker's are
// ABORTED: the caller means a process that is gone.
class Worker final : public WorkerClient, public std::enable_shared_from_this<Worker> {
 public:
  explicit Worker(WorkerOptions options);
  ~Worker() override;

  void status(Deadline deadline, Done<WorkerStatus> done) override;
  void register_graph(RegisterGraph request, Deadline deadline, Done<uint64_t> done) override;
  void deregister_graph(const std::string& session, uint64_t graph) override;
  void run_graph(RunGraph request, Deadline deadline, Done<RunGraphResult> done) override;
  void abort_step(int64_t step, const Status& status, Deadline deadline,
                  Done<std::vector<StepActivity>> done) override;
  void cleanup_session(const std::string& session) override;
  void reset(const std::vector<std::string>& containers, Deadline deadline, Done<> done) override;
  void activity(Deadline deadline, Done<TaskActivity> done) override;

  // abort_step(), for callers in this process.
  std::vector<StepActivity> abort(int64_t step, const Status& status);
  TaskActivity current_activity() const;
  // Until the handle goes, the reply of a step that has ended here is on its way to another process
  // and part of the activity. Null for a small reply.
  [[nodiscard]] std::shared_ptr<const void> reply_leaves(int64_t step, const std::string& session);
  WorkerStatus current_status() const;
  const TaskName& task() const { return options_.task; }
  ThreadPool& pool() const { return *options_.pool; }
  // Membership has met this process of `master`. Drops the sessions of earlier processes: nobody
  // will close them. Their late requests are ABORTED.
  void master_connected(const TaskName& master, uint64_t incarnation);
  // Gives back the memory of graphs that have not run since the last call, and free memory of the
  // process.
  void drop_unused();
  // Refuses new steps with `status`, gives running steps `grace` to end, then aborts them. False if
  // some have not ended a second later.
  bool drain(const Status& status, std::chrono::milliseconds grace);

 private:
  struct Session;
  struct Step;
  struct State;
  void start(std::shared_ptr<Step> step, RunGraph request);
  void finish(const std::shared_ptr<Step>& step, RunGraphResult result);
  void check_incarnation(uint64_t expected) const;
  void check_master(const TaskName& master, uint64_t incarnation) const;
  void drop_sessions_of_others(const TaskName& master, uint64_t incarnation);

  const WorkerOptions options_;
  std::unique_ptr<State> state_;
};

}  // namespace leat
