// The data plane of a task: the rendezvous of each of its steps. Values for the task itself stay
// here; others are pushed to the task at the edge's destination as soon as they exist.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "core/rendezvous.h"
#include "distributed/cluster/membership.h"
#include "graph/passes/pipeline.h"

namespace leat {

struct RouterOptions {
  // Runs what the abort of a step by another task triggers on a thread that may wait. Without it,
  // the transport's thread runs it, and receives nothing else meanwhile. (What a value triggers
  // runs on that thread if it is known to be quick: runtime/lent_thread.h.)
  std::function<void(std::function<void()>)> executor;
  // How long values of a step that has not begun here are kept, including incomplete ones.
  std::chrono::milliseconds parking{60'000};
  // How long meet() waits.
  std::chrono::milliseconds patience{5'000};
};

// Thread-safe.
class RendezvousRouter final : public MembershipListener {
 public:
  RendezvousRouter(const TaskName& self, RouterOptions options = {});
  ~RendezvousRouter() override;

  // The tasks of this task's description. Errors say which description lacks a peer.
  void know(const std::vector<TaskName>& tasks);

  // The rendezvous of a step that begins here, for the edges that begin or end on this task. It
  // contains values that came before. If a task that it needs is not connected, it is already
  // aborted (UNAVAILABLE names the task). Aborting it aborts the step on all tasks that share an
  // edge with this one. ALREADY_EXISTS if the step already runs here.
  std::shared_ptr<Rendezvous> open(int64_t step,
                                   const std::shared_ptr<const std::vector<CutEdge>>& edges);
  // The step has ended here: drops what still arrives for it. What it sent is still delivered.
  void close(int64_t step);
  // Calls `ready`, perhaps on a transport thread, once all tasks at the other ends of the edges
  // have been connected at some time: in a starting cluster they soon are. Also calls it after
  // `patience`: open() then names the missing task. Never calls it if the router is destroyed
  // first.
  void meet(const std::shared_ptr<const std::vector<CutEdge>>& edges, std::function<void()> ready);

  // Bytes of values that wait for their step to begin.
  size_t parked_bytes() const;
  size_t open_steps() const;
  // Bytes of tensors sent to other tasks since the start (Channel::sent_bytes).
  uint64_t sent_bytes() const;

  void connected(const TaskName& peer, uint64_t incarnation,
                 std::shared_ptr<Channel> channel) override;
  void lost(const TaskName& peer, const Status& status,
            std::chrono::steady_clock::time_point heard) override;
  void received(const TaskName& peer, int64_t step, int64_t edge, Tensor value,
                bool is_dead) override;
  void early(const TaskName& peer, int64_t step) override;
  void aborted(const TaskName& peer, int64_t step, const Status& status) override;
  StepPhase phase_of(int64_t step) override;
  Tensor room_for(const TaskName& peer, int64_t step, int64_t edge, DType dtype,
                  const Shape& shape) override;
  std::string describe(int64_t step, int64_t edge) override;
  void tick() override;

 private:
  class State;
  std::unique_ptr<State> state_;
};

}  // namespace leat
