// How a master reaches a worker: the worker itself in this process (worker.h), or another task's
// worker over the wire (remote_worker.h).
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "core/error.h"
#include "distributed/cluster/cluster_spec.h"
#include "graph/passes/pipeline.h"
#include "runtime/session.h"
#include "runtime/step_activity.h"

namespace leat {

// Another task that this one is connected to, and the way that tensors and steps take.
struct PeerLink {
  TaskName task;
  bool is_shared_memory = false;  // else gRPC
};

struct WorkerStatus {
  TaskName task;
  std::string cluster_id;  // its mark (identity.h): recognised by tasks that know the id
  uint64_t incarnation = 0;
  int64_t pid = 0;
  std::string host;
  std::vector<DeviceDescription> devices;
  // What the GPUs among them can run; null if there are none.
  std::shared_ptr<const KernelTable> gpu_kernels;
  int64_t sessions = 0, graphs = 0, running_steps = 0;
  uint64_t sent_bytes = 0;  // of tensors, to other tasks, since its start
  std::vector<PeerLink> links;
};

// One task's part of a partitioned graph. Its first graph creates the session.
struct RegisterGraph {
  uint64_t request_id = 0;          // a repeat gets the first answer; if not 0, the graph's handle
  uint64_t worker_incarnation = 0;  // the worker that the master means; 0: any
  std::string session;
  bool isolate_state = false;  // variables of the session's own
  TaskName master;
  uint64_t master_incarnation = 0;
  std::map<std::string, Graph> partitions;  // by device
  std::vector<CutEdge> edges;               // that begin or end on this task
  std::vector<std::string> fetches;         // that this task holds
};

struct RunGraph {
  uint64_t request_id = 0;
  uint64_t worker_incarnation = 0;
  std::string session;
  uint64_t graph = 0;  // what register_graph answered
  int64_t step = 0;
  NamedTensors feeds;  // of this task
  bool trace = false;
  bool any_size = false;  // of the fetches; else RESOURCE_EXHAUSTED beyond one gRPC message
};

struct RunGraphResult {
  Status status;  // of the step on this worker; derived if it only follows from an abort
  NamedTensors fetches;
  std::vector<TraceEvent> events;
  std::vector<StepActivity> activity;  // what the step did and waited for when it was aborted
};

// A running step of a worker.
struct RunningStep {
  int64_t step = 0;
  std::string session;
  TaskName master;  // that started it
  int64_t ns = 0;   // duration
  std::vector<StepActivity> activity;
};

// A task's current activity.
struct TaskActivity {
  std::vector<RunningStep> steps;   // of all masters
  std::vector<StepActivity> waits;  // what its own master waits for besides steps
};

// Thread-safe. Every call returns at once; `done` is called exactly once, on any thread, possibly
// before the return. A status other than OK names the task and says why it could not be reached;
// UNAVAILABLE comes from the connection. Deadlines also belong to the connection: a worker in this
// process ignores them, and its master ends its steps.
class WorkerClient {
 public:
  using Deadline = std::optional<std::chrono::steady_clock::time_point>;
  template <class... Results>
  using Done = std::function<void(const Status&, Results...)>;

  virtual ~WorkerClient() = default;

  virtual void status(Deadline deadline, Done<WorkerStatus> done) = 0;
  virtual void register_graph(RegisterGraph request, Deadline deadline, Done<uint64_t> done) = 0;
  // Running steps keep the graph until they end.
  virtual void deregister_graph(const std::string& session, uint64_t graph) = 0;
  // The status is the call's; result.status is the step's.
  virtual void run_graph(RunGraph request, Deadline deadline, Done<RunGraphResult> done) = 0;
  // Ends the step here, even if it has not arrived yet. Passes on at once what it did and waited
  // for: a blocked kernel may take time to end.
  virtual void abort_step(int64_t step, const Status& status, Deadline deadline,
                          Done<std::vector<StepActivity>> done) = 0;
  // Drops the session with its graphs, and with its variables if they are its own.
  virtual void cleanup_session(const std::string& session) = 0;
  // Forgets the variables of these containers; none: of the default one.
  virtual void reset(const std::vector<std::string>& containers, Deadline deadline,
                     Done<> done) = 0;
  virtual void activity(Deadline deadline, Done<TaskActivity> done) = 0;
};

}  // namespace leat
