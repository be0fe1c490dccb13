// Program: one partition of one step signature, ready to run on one device.
//
// Life of a step
//   1. A session turns (feeds, fetches, targets) into a StepSignature and looks up its
//      RegisteredGraph: one Program per device. The first time, graph/passes/pipeline.h prunes,
//      simplifies, places and partitions the graph for it.
//   2. When a Program is made, planner.h cuts its partition into items (program_plan.h): segments,
//      and boundary nodes between them (_Send, _Recv, Switch, Merge, kernels that wait or whose
//      output shapes depend on data).
//   3. A step counts dependencies between items. It starts all _Recvs that depend on nothing, then
//      runs what is ready on the thread that started it. Items run one at a time, in the order in
//      which they become ready: boundary nodes first, since they feed others; of several segments
//      that take long, all but one go to the pool. Arrivals from elsewhere (a _Recv, a finished
//      copy) go into the step's inbox; the thread that puts one there runs the step if none does.
//   4. A segment looks for the tape for the shapes that arrived: two atomic exchanges if they are
//      those of last time, else a short list, else compile_tape(). The tape locks its variables,
//      patches the pointers of inputs and results into its arena, and calls {function, bound
//      arguments} from top to bottom.
//   5. A dead value sets a flag. An item with a dead input does not run; Merge takes the first live
//      one.
//   6. The first error ends the step: ready items are dropped, the rendezvous is aborted so that no
//      other partition waits for this one, and the step ends when nothing is under way any more.
// A Program of a single segment skips all this: run_straight() calls the tape on the caller's
// thread. Next: tape.h, and program_step.h for steps with several items.
#pragma once

#include <atomic>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "runtime/plan/program_plan.h"
#include "runtime/segment.h"
#include "runtime/session.h"

namespace leat {

class LoopProgram;
class ProgramStep;

// Thread-safe; any number of steps at once.
class Program {
 public:
  // `pool` (for work handed to another thread) and all other references outlive the program.
  // `part`: of a part of a step.
  Program(Graph partition, const std::vector<std::string>& fetches, Device& device, Device& host,
          Containers& containers, NodeStates& node_states, ThreadPool& pool,
          const PartPlaces* part = nullptr);
  ~Program();
  Program(const Program&) = delete;

  const ProgramPlan& plan() const { return plan_; }

  // INVALID_ARGUMENT, with both dtypes or both shapes and the user's line, if the tensor does not
  // fit this feed.
  void check_feed(int feed, const Tensor& tensor) const;

  // Its steps need a rendezvous.
  bool has_edges() const { return has_edges_; }
  bool is_straight() const { return plan_.is_straight; }
  // Runs one step on the caller's thread; only if is_straight(). Feeds and fetches are in the order
  // of the plan; feeds must have been checked. `given`, by feed: see TapeInstance::run.
  void run_straight(std::span<const Tensor* const> feeds, std::span<Tensor* const> fetches,
                    std::vector<TraceEvent>* events, std::span<const char> given = {});

  // Of a straight program: where its segment's inputs come from and its results go.
  struct Straight {
    std::vector<int> inputs;                            // feeds
    std::vector<int> results;                           // fetches
    std::vector<std::pair<int, int>> constants, feeds;  // fetches that need no segment, sources
  };
  const Straight& straight() const { return straight_; }

  const Segment& segment(int i) const { return *segments_[i]; }
  Segment& segment(int i) { return *segments_[i]; }
  // Gives back the memory of segments that have not run since the last call.
  void drop_unused();
  // Gives back large memory that is not in use.
  void drop_large();

 private:
  friend class ProgramStep;
  void trace(const Tape& tape, const std::vector<InstructionTimes>& times,
             std::vector<TraceEvent>& events) const;

  ProgramPlan plan_;
  ThreadPool& pool_;
  bool has_edges_ = false;
  std::vector<std::unique_ptr<Segment>> segments_;
  std::vector<std::unique_ptr<LoopProgram>> loops_;
  std::vector<std::atomic<int64_t>> costs_ns_;  // running mean of each segment's time; 0 = unknown
  std::vector<std::atomic<int64_t>>
      kernel_costs_ns_;  // the same, by item: kernels between segments

  Straight straight_;
};

}  // namespace leat
