// One task's part of a step signature: a Program per device, ready to run. A local session has one
// per signature; a worker of a cluster has one per graph that a master registered with it.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "core/device.h"
#include "core/rendezvous.h"
#include "core/state/variable.h"
#include "graph/passes/pipeline.h"
#include "runtime/node_states.h"
#include "runtime/session.h"
#include "runtime/step_activity.h"

namespace leat {

class Program;

// What a task lends to the graphs that run on it. All of it outlives the RegisteredGraph.
struct TaskResources {
  std::vector<Device*> devices;
  ThreadPool* pool = nullptr;
  std::shared_ptr<Containers> containers;   // variables
  std::shared_ptr<NodeStates> node_states;  // of the session
};

// The inputs of one step. Feeds are host tensors whose dtypes must fit the graph (INVALID_ARGUMENT
// names the feed, and shows both shapes if a partial shape is contradicted).
struct StepRequest {
  int64_t step_id = 0;
  NamedTensors feeds;
  std::shared_ptr<Rendezvous> rendezvous;  // null if no edge crosses a device
  bool trace = false;
  // Called once, as soon as cancel() can find the step. If the step was aborted before that,
  // returns the status to end it with. May be empty.
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
  // Only this task's partitions, and the fetches ("node:index") in them. The `_Feed` nodes say what
  // is fed. Throws if an op has no kernel (all such nodes in one message).
  RegisteredGraph(std::map<std::string, Graph> partitions, std::vector<std::string> fetches,
                  const std::vector<CutEdge>& edges, TaskResources resources);
  // Cancels the running steps and waits for them.
  ~RegisteredGraph();

  // Starts a step. `done` is called once, on any thread, possibly before run() returns (a step that
  // never waits runs on the caller).
  using Done = std::function<void(StepResult)>;
  void run(StepRequest request, Done done);

  // Ends the running steps with `status` at the next segment border; returns at once.
  void cancel(const Status& status);
  void cancel(int64_t step_id, const Status& status);  // one step, if it is running
  // What the step waits for and runs. Empty if it does not run here.
  std::vector<StepActivity> activity(int64_t step_id) const;

  // Prepared calls, for callers in this process that hold all feeds: by position, not by name.
  struct Call;
  // NOT_FOUND if the graph does not hold a fetch; INVALID_ARGUMENT if a feed of the graph is
  // missing. Unneeded feeds are ignored.
  std::shared_ptr<const Call> prepare(const std::vector<std::string>& feeds,
                                      const std::vector<std::string>& fetches) const;
  bool has_feed(const std::string& name) const;
  // True if a step is one segment of one program: it neither waits nor needs a rendezvous, so
  // run_here() may be used.
  bool runs_on_caller() const;
  // Runs one step on the caller's thread. Throws. First drops the handles in `fetches`, so that
  // their memory is reused: in steady state nothing is allocated.
  void run_here(const Call& call, std::span<const Tensor> feeds, std::vector<Tensor>& fetches);
  // Starts a step. `fetches` must live until `done`, which is called once, on any thread, possibly
  // before start() returns.
  void start(const Call& call, int64_t step_id, std::span<const Tensor> feeds,
             std::shared_ptr<Rendezvous> rendezvous, std::vector<Tensor>* fetches,
             std::function<void(const Status&)> done);

  // Gives back the memory of segments that have not run since the last call. Code that runs steps
  // calls it now and then, followed by BlockMemory::trim().
  void drop_unused();

  // For tests and reports.
  const std::vector<std::unique_ptr<Program>>& programs() const;

 private:
  class State;
  std::unique_ptr<State> state_;
};

}  // namespace leat
