// Clocks: workers run at their own pace, but none gets more than some steps ahead of the slowest.
// For training with bounded staleness: stale synchronous parallel (Ho et al., "More Effective
// Distributed ML via a Stale Synchronous Parallel Parameter Server", NIPS 2013), and the bounded
// delay of Li et al., "Scaling Distributed Machine Learning with the Parameter Server", OSDI 2014.
//   Clock clock(g, "clock", 4, {.shared_name = "clock"});
//   Output admitted = clock.wait(0, 2);  // of worker 0, before it reads the variables
//   Output count = clock.tick(0);        // after its update
#pragma once

#include <string>
#include <string_view>

#include "graph/ops.h"

namespace leat {

struct ClockOptions {
  std::string container = {};  // "" = the task's default container
  // Sessions whose graphs give the same name share it; "" = each session has its own.
  std::string shared_name = {};
};

// One counter for each of `members` workers. All begin present, at 0. If every worker waits before
// a step and ticks after it, a read by a worker at count c sees the updates of all steps up to c -
// staleness - 1 of all present workers. No worker reads while it is more than `staleness` ahead of
// the slowest; between its tick and its next wait it may be one further ahead. With staleness 0 all
// workers take each step together.
//
// Wait in a run before the run that reads. In one run, a read that has the wait as its control
// input must be on the variable's task: what a step sends to other tasks may leave before the wait
// ends.
//
// `rank`, from 0 to members - 1, and `staleness` are integers or integer scalars of the graph.
// Every method adds a node. A wrong constant is an INVALID_ARGUMENT at the caller's line; a wrong
// value of an Output is one of the step. The clock lives on its node's device, as long as its
// session (with a shared_name: as long as its container). It is in no checkpoint: a worker that
// restarts calls join(). Cheap to copy; valid as long as its graph.
class Clock {
 public:
  Clock(Graph& graph, std::string_view name, int64_t members, const ClockOptions& options = {},
        Location at = here());

  // The member has finished a step: adds 1 to its count and returns it, int64. If the member had
  // left, it is present again.
  Output tick(const Operand& rank, Location at = here()) const;
  // Waits until the member's count is at most `staleness` above the lowest of those present, and
  // returns the lowest, int64. The error of a step whose deadline passes names the members that it
  // has waited for.
  Output wait(const Operand& rank, const Operand& staleness, Location at = here()) const;
  // For a worker that starts late or again: it is present, and its count becomes the lowest of the
  // others present, or stays as it is if there are none. Returns it, int64.
  Output join(const Operand& rank, Location at = here()) const;
  // For a worker whose data has ended, or that is lost: no wait counts it any more.
  Node& leave(const Operand& rank, Location at = here()) const;
  // The count of each member, -1 for one that has left: int64 [members].
  Output read(Location at = here()) const;

  Output handle() const { return handle_; }  // for other ops on clocks
  int64_t members() const { return members_; }

 private:
  std::string what(std::string_view operation, Location at) const;
  Node& add(std::string_view op, std::string_view operation, std::vector<Output> inputs,
            Location at) const;
  Output rank_of(const Operand& rank, std::string_view operation, Location at) const;

  std::string name_;  // as the user gave it
  int64_t members_;
  Output handle_;
};

}  // namespace leat
