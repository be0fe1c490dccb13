// While loops: a boundary node of a program that owns two programs, its condition and its body.
// Between iterations nothing is kept but the loop variables; a part that is one segment is a call
// (Program::run_straight), any other part a ProgramStep that is started again for each iteration.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "graph/loops/loops.h"
#include "runtime/program_step.h"

namespace leat {

// Made once per program; constant then.
class LoopProgram {
 public:
  LoopProgram(const Node& loop, Device& device, Device& host, Containers& containers,
              NodeStates& node_states, ThreadPool& pool);

  struct Part {
    std::unique_ptr<Program> program;
    std::vector<int> feeds;    // by feed: which of the `_Loop` node's inputs
    std::vector<int> fetches;  // by value that is asked for: which fetch it is
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
  std::optional<Part> last_;  // what runs once, when there is no further iteration
  int64_t done_edge_;  // where the end of an iteration is signalled; -1: nobody waits for it
};

// One loop of one step. Reused: start() begins the next one.
class LoopRun final : public ProgramStep::Owner {
 public:
  // `outer` is the step that the loop is part of.
  LoopRun(const LoopProgram& loop, ProgramStep& outer, ThreadPool& pool);

  // `inputs` as the `_Loop` node has them. `done` is called once, on any thread, perhaps before
  // start() returns; after it values() begin with the variables' last values.
  void start(std::vector<Tensor> inputs, Rendezvous* rendezvous, bool is_traced,
             std::function<void(const Status&)> done);
  std::vector<Tensor>& values() { return values_; }
  std::vector<TraceEvent>& events() { return events_; }
  // The part that is under way, if any. Any thread.
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
  std::vector<TraceEvent> events_;
};

}  // namespace leat
