#include "runtime/local_rendezvous.h"

#include <utility>

namespace leat {

LocalRendezvous::State& LocalRendezvous::at(Edge edge) {
  check_internal(edge >= 0 && static_cast<size_t>(edge) < edges_.size(), "edge ", edge,
                 " does not exist: the graph has ", edges_.size(), " edges");
  return edges_[edge];
}

void LocalRendezvous::send(Edge edge, Tensor value, bool is_dead) {
  Arrived arrived;
  {
    const std::lock_guard lock(mutex_);
    if (!aborted_.is_ok()) return;
    State& state = at(edge);
    check_internal(!state.is_sent, "edge ", edge, " was sent again before it was received");
    if (!state.arrived) {
      state.is_sent = true;
      state.value = std::move(value);
      state.is_dead = is_dead;
      return;
    }
    arrived = std::exchange(state.arrived, nullptr);
  }
  arrived({}, std::move(value), is_dead);
}

void LocalRendezvous::recv(Edge edge, Arrived arrived) {
  Status status;
  Tensor value;
  bool is_dead = false;
  {
    const std::lock_guard lock(mutex_);
    State& state = at(edge);
    check_internal(!state.arrived, "edge ", edge, " is already being received");
    if (aborted_.is_ok() && !state.is_sent) {
      state.arrived = std::move(arrived);
      return;
    }
    status = aborted_;
    if (status.is_ok()) value = std::move(state.value);
    is_dead = state.is_dead;
    state.is_sent = false;
  }
  arrived(status, std::move(value), is_dead);
}

void LocalRendezvous::abort(const Status& status) {
  std::vector<Arrived> waiting;
  {
    const std::lock_guard lock(mutex_);
    if (!aborted_.is_ok()) return;
    aborted_ = status;
    for (State& state : edges_) {
      if (state.arrived) waiting.push_back(std::exchange(state.arrived, nullptr));
      state.value = Tensor();
    }
  }
  for (Arrived& arrived : waiting) arrived(status, {}, false);
}

}  // namespace leat
