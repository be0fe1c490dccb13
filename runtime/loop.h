// While loops: a boundary node of a program that owns two programs, its condition and its body.
// Only the loop variables are kept between iterations. A part of a single segment is a call
// (Program::run_straight); any other part is a ProgramStep that restarts in each iteration.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "graph/loops/loops.h"
#include "runtime/program_step.h"

namespace leat {

// Made once per program; then constant.
class LoopProgram {
 public:
  LoopProgram(const Node& loop, Device& device, Device& host, Containers& containers,
              NodeStates& node_states, ThreadPool& pool);

  struct Part {
    std::unique_ptr<Program> program;
    std::vector<int> feeds;    // by feed: which input of the `_Loop` node
    std::vector<int> fetches;  // by requested value: which fetch it is
  };
  const Part& condition() const { return condition_; }  // one value: is there another iteration?
  const Part& body() const { return body_; }            // by variable: its next value
  const Part* last() const { return last_ ? &*last_ : nullptr; }
  int64_t done_edge() const { return done_edge_; }
  bool has_edges() const {
    return done_edge_ >= 0 || condition_.program->has_edges() || body_.program->has_edges() ||
           (last_ && last_->program->has_edges());
  }
  int variables() const { return static_cast<int>(body_.fetches.size()); }
  void drop_unused();
  void drop_large();

 private:
  Part condition_, body_;
  std::optional<Part> last_;  // runs once after the last iteration
  int64_t done_edge_;         // signals the end of an iteration; -1: nothing waits for it
};

class PinnedLoop;

// One loop of one step. Reused: start() begins the next one.
class LoopRun final : public ProgramStep::Owner {
 public:
  // `outer` is the step that the loop is part of.
  LoopRun(const LoopProgram& loop, ProgramStep& outer, ThreadPool& pool);
  ~LoopRun();

  // `inputs` are those of the `_Loop` node. `done` is called once, on any thread, perhaps before
  // start() returns; from then on values() begin with the final values of the variables.
  void start(std::vector<Tensor> inputs, Rendezvous* rendezvous, bool is_traced,
             std::function<void(const Status&)> done);
  std::vector<Tensor>& values() { return values_; }
  std::vector<TraceEvent>& events() { return events_; }
  // The part that runs, if any. Any thread.
  const ProgramStep* under_way() const { return under_way_.load(std::memory_order_acquire); }

  void step_done(ProgramStep& step) override;
  Status cancel_status() const override;
  bool is_ending() const override;
  const StepEnd::Flag& step_end() const override { return outer_.owner().step_end(); }
  Cancellation& cancellation() override;
  void step_failed(const Status& status) override;

 private:
  void advance();
  bool run(const LoopProgram::Part& part, std::optional<ProgramStep>& step);
  void run_straight(const LoopProgram::Part& part);
  bool pin();
  bool take_results();
  void finish(const Status& status);

  const LoopProgram& loop_;
  ProgramStep& outer_;
  ThreadPool& pool_;
  std::optional<ProgramStep> condition_, body_, last_;  // made when first needed
  Rendezvous* rendezvous_ = nullptr;
  std::atomic<ProgramStep*> under_way_{nullptr};
  bool is_traced_ = false;
  enum class At : uint8_t { condition, body, last } at_ = At::condition;
  std::function<void(const Status&)> done_;
  std::vector<Tensor> values_;   // of the inputs; variables change
  std::vector<Tensor> results_;  // of the part that ran, by fetch
  std::unique_ptr<PinnedLoop> pinned_;
  int until_pinned_ = 0;  // iterations
  std::vector<TraceEvent> events_;
};

}  // namespace leat
