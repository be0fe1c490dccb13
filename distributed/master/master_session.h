// A client's session on a master: its growing graph, the devices it may use, and a bounded cache of
// the programs compiled and registered for its signatures.
#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "distributed/master/cluster_program_cache.h"
#include "distributed/master/discovery.h"
#include "distributed/master/partial_run.h"
#include "distributed/master/session_graph.h"
#include "distributed/master/session_step.h"

namespace leat {

class ThreadPool;

// A step request as the client wrote it: feeds and fetches "node:index", targets "node".
struct ClientRequest {
  NamedTensors feeds;
  std::vector<std::string> fetches, targets;
  std::map<std::string, std::string> connections;  // StepSignature::connections
  RunOptions options;
  bool any_size = false;  // the client takes fetches of any size
  StepTimes times;
};

// Thread-safe. Callbacks run on any thread, possibly before the call returns.
class MasterSession : public std::enable_shared_from_this<MasterSession> {
 public:
  using Deadline = WorkerClient::Deadline;

  MasterSession(std::shared_ptr<const Peers> peers, uint64_t master_incarnation, ThreadPool& pool,
                std::string handle, SessionOptions options);

  const std::string& handle() const { return handle_; }
  const SessionOptions& options() const { return options_; }

  // Adds the nodes of a GraphDef to a session at `version` (ABORTED if it is at another), waits for
  // the tasks that they need, and places stateful nodes. A failure leaves the session unchanged.
  // Passes on the new version. The first call, with the client's graph, is for version -1 and makes
  // it 0.
  void extend(std::string graph_def, int64_t version, Deadline deadline,
              std::function<void(const Status&, int64_t version)> done);

  // Starts a step. The returned function cancels it, and may be called at any time.
  using Cancel = std::function<void(const Status&)>;
  Cancel run(ClientRequest request, ClusterStep::Done done);

  // Compiles the step. Passes on the callable's handle, or the error in the signature.
  void make_callable(StepSignature signature, const RunOptions& options,
                     std::function<void(const Status&, int64_t handle)> done);
  // The request for one run of a callable; feeds are in the order of its signature.
  ClientRequest request_of_callable(int64_t handle, std::vector<Tensor> feeds) const;
  void release_callable(int64_t handle);

  // Compiles the step of a partial run. Passes on the handle for partial_run().
  void partial_run_setup(const StepSignature& signature,
                         std::function<void(const Status&, std::string handle)> done);
  // One call of a partial run (partial_run.h). The returned function ends the whole run, as an
  // error does.
  Cancel partial_run(const std::string& handle, ClientRequest request, ClusterStep::Done done);

  std::vector<DeviceDescription> devices() const;
  void task_lost(const TaskName& task, const std::string& why);
  // Ends running steps with CANCELLED, waits for them (10 s at most), and drops the session on all
  // workers.
  void close(std::function<void()> done);
  // The same when not closed by the client: its steps end with `why`.
  void close(const Status& why, std::function<void()> done);

  size_t running_steps() const;
  // Time since the client's last request; 0 while a step runs.
  std::chrono::nanoseconds idle() const;
  // Gives back programs on all tasks, and most of the graph's memory here, if they are unused for
  // `limit`, or so long that rebuilding them would cost little by comparison. The next step that
  // needs them rebuilds them. Running steps are not disturbed.
  void drop_unused(std::chrono::nanoseconds limit);
  // A step was cancelled because its client went away. Unless the client soon returns, it was
  // killed and will never close the session, which then gives back all that it can.
  void client_left();
  // Gives back all that it can, if no request has come since client_left().
  void sleep_if_left();

 private:
  static constexpr size_t cached_programs = 128;
  struct Callable {
    StepSignature signature;
    RunOptions options;
  };

  void end(const Status& steps, const Status& later, std::function<void()> done);
  bool is_over() const;
  void accept_graph(Status status, const TaskStatuses& found, const std::shared_ptr<Graph>& graph,
                    const std::function<void(const Status&, int64_t)>& done);
  void program(const StepSignature& signature, ClusterProgramCache::Ready ready);
  void build(const StepSignature& signature);
  void compile(const StepSignature& signature, const TaskStatuses& restarted);
  void note_build(std::chrono::nanoseconds took);
  void forget_programs_on(const std::vector<TaskName>& tasks);
  void cleanup(const std::vector<std::shared_ptr<WorkerClient>>& workers) const;
  PipelineOptions pipeline_options(const StepSignature& signature, const TaskStatuses& tasks) const;
  Cancel start(StepSignature signature, ClusterStep::Request step, bool with_graphs,
               ClusterStep::Done done);
  std::shared_ptr<SessionStep> admit(ClusterStep::Done done);
  Timer::Id end_unless_built(Deadline deadline, ClusterStep::Done end);
  void forget_partial_run(const std::string& handle);
  Timer::Id end_call_at(const StepTimes& times, const std::string& handle,
                        const std::shared_ptr<PartialRun>& run, const PartialRun::Call& call);
  ClusterStep::Done add_partition_graphs(const StepSignature& signature, ClusterStep::Done end);
  std::vector<std::string> partition_graphs(const StepSignature& signature);
  void run_ended(const std::shared_ptr<SessionStep>& run);

  WaitList waits_;                            // of this session's discoveries and builds
  std::shared_ptr<const void> listed_;        // in the task's list
  const std::shared_ptr<const Peers> peers_;  // with waits_
  const uint64_t master_incarnation_;
  ThreadPool& pool_;
  const std::string handle_;
  const SessionOptions options_;

  ClusterProgramCache programs_{cached_programs};
  SessionGraph graph_;

  mutable std::mutex mutex_;
  int64_t version_ = -1;
  bool is_extending_ = false;
  TaskStatuses tasks_;
  std::set<TaskName> stale_tasks_;  // restarted: asked again before the next build
  std::map<int64_t, Callable> callables_;
  int64_t last_callable_ = 0;
  std::map<std::string, std::shared_ptr<PartialRun>> partial_runs_;
  int64_t last_partial_run_ = 0;
  std::set<std::shared_ptr<SessionStep>> runs_;
  Status closed_;  // the status for later requests, once closed
  std::vector<std::function<void()>> when_idle_;
  std::chrono::steady_clock::time_point last_used_ = std::chrono::steady_clock::now();
  bool has_client_left_ = false;  // since the last step began
  std::chrono::nanoseconds longest_build_{0};
};

}  // namespace leat
