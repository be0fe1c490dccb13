// What one task holds of one step signature: a Program per device, ready to run. The local session
// has one, a worker of a cluster has one per graph that a master registered with it.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "core/device.h"
#include "core/rendezvous.h"
#include "core/variable.h"
#include "graph/passes/pipeline.h"
#include "runtime/node_states.h"
#include "runtime/session.h"
#include "runtime/step_activity.h"

namespace leat {

class Program;

// What a task lends to the graphs that run on it; all outlive the RegisteredGraph.
struct TaskResources {
  std::vector<Device*> devices;
  ThreadPool* pool = nullptr;
  std::shared_ptr<Containers> containers;   // variables
  std::shared_ptr<NodeStates> node_states;  // of the session
};

// One step's inputs. Feeds are host tensors; their dtypes must fit the graph (INVALID_ARGUMENT
// names the feed, and shows both shapes if a partial shape is contradicted).
struct StepRequest {
  int64_t step_id = 0;
  NamedTensors feeds;
  std::shared_ptr<Rendezvous> rendezvous;  // null if no edge crosses a device
  bool trace = false;
  // Asked once from when on cancel() finds the step: if it was aborted before that, the status with
  // which it shall end. May be empty.
  std::function<Status()> early_abort;
};

struct StepResult {
  Status status;         // the first error; later ones follow from it
  NamedTensors fetches;  // those that this task holds
  std::vector<TraceEvent> events;
};

// Thread-safe; any number of steps at once.
class RegisteredGraph {
 public:
  // Only the partitions of this task, and the fetches ("node:index") that they hold. What is fed is
  // told by the `_Feed` nodes. Throws if an op has no kernel (all such nodes in one message).
  RegisteredGraph(std::map<std::string, Graph> partitions, std::vector<std::string> fetches,
                  const std::vector<CutEdge>& edges, TaskResources resources);
  // Cancels the steps that run and waits for them.
  ~RegisteredGraph();

  // Starts a step; `done` is called once, on any thread, possibly before run() returns (a step that
  // never waits runs on the caller).
  using Done = std::function<void(StepResult)>;
  void run(StepRequest request, Done done);

  // Ends the steps that run with `status`, at the next segment border; returns at once.
  void cancel(const Status& status);
  void cancel(int64_t step_id, const Status& status);  // one step, if it still runs
  // What the step waits for and runs. Empty if it does not run here.
  std::vector<StepActivity> activity(int64_t step_id) const;

  // Prepared calls, for callers in this process that hold all feeds: positions instead of names.
  struct Call;
  // NOT_FOUND if the graph does not hold a fetch; INVALID_ARGUMENT if a feed of the graph is
  // missing. Feeds that nothing needs are ignored.
  std::shared_ptr<const Call> prepare(const std::vector<std::string>& feeds,
                                      const std::vector<std::string>& fetches) const;
  bool has_feed(const std::string& name) const;
  // True if a step is one segment of one program: it neither waits nor needs a rendezvous, and
  // run_here() may be used.
  bool runs_on_caller() const;
  // One step on the caller's thread. Throws. Handles that `fetches` still holds are dropped first,
  // so that their memory is used again: in steady state nothing is allocated.
  void run_here(const Call& call, std::span<const Tensor> feeds, std::vector<Tensor>& fetches);
  // Starts a step. `fetches` must live until `done`, which is called once, on any thread, possibly
  // before start() returns.
  void start(const Call& call, int64_t step_id, std::span<const Tensor> feeds,
             std::shared_ptr<Rendezvous> rendezvous, std::vector<Tensor>* fetches,
             std::function<void(const Status&)> done);

  // Gives back the memory of what has not run since the last call. For whoever runs steps to call
  // now and then, and BlockMemory::trim() after it.
  void drop_unused();

  // For tests and reports.
  const std::vector<std::unique_ptr<Program>>& programs() const;

 private:
  class State;
  std::unique_ptr<State> state_;
};

}  // namespace leat
