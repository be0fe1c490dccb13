// Segment: a group of nodes that cannot wait, branch or produce a data-dependent shape. It finds
// (or compiles) the tape for the shapes that arrived, and runs it.
#pragma once

#include <atomic>
#include <list>
#include <memory>
#include <mutex>
#include <span>
#include <vector>

#include "runtime/tapes/tape.h"

namespace leat {

class NodeStates;

// Thread-safe: any number of runs at once, each on its own instance.
class Segment {
 public:
  // Keeps tapes of at most `kept_bytes` (Tape::bytes) and the result buffers that go with them, at
  // most `most_tapes`, but always the last one; drops the least recently used first. All arguments
  // outlive the segment.
  Segment(const ProgramPlan& program, const SegmentPlan& plan, NodeStates& node_states,
          size_t kept_bytes = size_t{64} << 20);
  ~Segment();
  Segment(const Segment&) = delete;

  // Runs on the calling thread, and blocks only on the variables' locks (held for this run at
  // most). `inputs` as SegmentPlan::inputs, `results` as SegmentPlan::results (null: not wanted).
  // Throws with the node's name.
  // `taker`, `given`: see TapeInstance::run.
  void run(std::span<const Tensor* const> inputs, std::span<Tensor* const> results,
           const ResultTaker* taker = nullptr, std::span<const char> given = {}) {
    run(inputs, results, nullptr, taker, given);
  }
  // The same, and reports when each instruction ran. Returns the tape that the times belong to.
  std::shared_ptr<const Tape> run_traced(std::span<const Tensor* const> inputs,
                                         std::span<Tensor* const> results,
                                         std::vector<InstructionTimes>& times,
                                         const ResultTaker* taker = nullptr,
                                         std::span<const char> given = {}) {
    return run(inputs, results, &times, taker, given);
  }

  // For a caller that runs one instance many times: it is the caller's until it gives it back. Not
  // of a segment with variables, which each run must lock.
  bool has_variables() const { return !locks_.empty(); }
  std::unique_ptr<TapeInstance> take(std::span<const Tensor* const> inputs) {
    return acquire(inputs);
  }
  void give_back(std::unique_ptr<TapeInstance> instance) { release(std::move(instance)); }

  static constexpr size_t most_tapes = 1'024;

  // Drops the instances that have not run since the last call, with their result buffers, and the
  // arenas that none has used. Keeps small ones: making them anew would cost more than they hold.
  void drop_unused();
  // Drops idle instances and arenas that hold 1 MB or more.
  void drop_large();

  // For tests and reports.
  struct Counts {
    size_t tapes = 0, compilations = 0;
    size_t instances = 0, arenas = 0;            // made so far
    size_t arena_bytes = 0, max_live_bytes = 0;  // of the tape used last
    size_t instructions = 0;                     // likewise
  };
  Counts counts() const;

 private:
  struct Entry {
    std::shared_ptr<const Tape> tape;
    std::vector<std::unique_ptr<TapeInstance>> idle;
  };
  struct Arena {
    std::shared_ptr<Buffer> memory;
    bool was_used = true;  // since the last drop_unused()
  };
  class VariableLocks;

  std::shared_ptr<const Tape> run(std::span<const Tensor* const> inputs,
                                  std::span<Tensor* const> results,
                                  std::vector<InstructionTimes>* times, const ResultTaker* taker,
                                  std::span<const char> given);
  std::unique_ptr<TapeInstance> acquire(std::span<const Tensor* const> inputs);
  [[noreturn]] void refuse(std::unique_ptr<TapeInstance> hot);
  void release(std::unique_ptr<TapeInstance> instance);
  void park(std::unique_ptr<TapeInstance> instance);
  template <class IsDropped, class IsArenaDropped>
  void drop_idle(IsDropped is_dropped, IsArenaDropped is_arena_dropped);
  bool matches(const Tape& tape, std::span<const Tensor* const> inputs) const;
  void forget_tapes(std::list<Entry>& dropped);
  std::unique_ptr<TapeInstance> with_arena(std::unique_ptr<TapeInstance> instance);
  std::shared_ptr<Buffer> new_arena(size_t bytes, bool has_grown) const;

  const ProgramPlan& program_;
  const SegmentPlan& plan_;
  NodeStates& node_states_;
  TapeHints hints_;
  const size_t kept_bytes_;
  struct Lock {
    Variable* variable;
    bool is_exclusive;
  };
  std::vector<Lock> locks_;  // by address, so that no two runs deadlock

  // The instance that ran last: in steady state, finding a tape costs only two exchanges.
  std::atomic<TapeInstance*> hot_{nullptr};
  mutable std::mutex mutex_;
  std::list<Entry> tapes_;     // the most recently used first
  std::vector<Arena> arenas_;  // of instances that do not run
  Counts counts_;
};

}  // namespace leat
