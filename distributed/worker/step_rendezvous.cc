#include "distributed/worker/step_rendezvous.h"

#include <utility>

#include "distributed/loss_text.h"
#include "runtime/lent_thread.h"

namespace leat {

Routes::Routes(const std::vector<CutEdge>& edges, const TaskName& self) {
  for (size_t i = 0; i < edges.size(); ++i) {
    const CutEdge& edge = edges[i];
    const TaskName source = TaskName::of(edge.source), destination = TaskName::of(edge.destination);
    if (source != self && destination != self) continue;
    Route route{Kind::local, -1, i, edge.repeats};
    if (source != destination) {
      const TaskName& peer = source == self ? destination : source;
      route.kind = source == self ? Kind::outgoing : Kind::incoming;
      route.peer = peer_index(peer);
      if (route.peer < 0) {
        route.peer = static_cast<int>(peers.size());
        peers.push_back(peer);
      }
    }
    by_id[edge.id] = static_cast<int32_t>(routes.size());
    routes.push_back(route);
  }
}

int Routes::find(int64_t edge) const {
  const auto found = by_id.find(edge);
  return found == by_id.end() ? -1 : found->second;
}

int Routes::peer_index(const TaskName& task) const {
  for (size_t i = 0; i < peers.size(); ++i) {
    if (peers[i] == task) return static_cast<int>(i);
  }
  return -1;
}

StepRendezvous::StepRendezvous(int64_t step, std::shared_ptr<const std::vector<CutEdge>> edges,
                               std::shared_ptr<const Routes> routes, TaskName self,
                               Executor executor)
    : step_(step),
      edges_(std::move(edges)),
      routes_(std::move(routes)),
      self_(std::move(self)),
      executor_(std::move(executor)),
      slots_(routes_->routes.size()),
      channels_(routes_->peers.size()) {}

void StepRendezvous::send(Edge edge, Tensor value, bool is_dead) {
  const int route = routes_->find(edge);
  if (route < 0 || routes_->routes[static_cast<size_t>(route)].kind == Routes::Kind::incoming) {
    return abort({Code::internal, concat("edge ", edge, " does not begin on ", self_)});
  }
  const Routes::Route& to = routes_->routes[static_cast<size_t>(route)];
  if (to.kind == Routes::Kind::local) {
    if (!deliver(static_cast<size_t>(route), std::move(value), is_dead, false))
      abort({Code::internal, concat(describe(edge), " was sent twice in one step")});
    return;
  }
  {
    std::lock_guard lock(mutex_);
    if (!status_.is_ok()) return;
  }
  if (const auto& channel = channels_[static_cast<size_t>(to.peer)]) {
    channel->send(step_, edge, std::move(value), is_dead);
  }
}

void StepRendezvous::recv(Edge edge, Arrived arrived) {
  const int route = routes_->find(edge);
  Status status;
  Tensor value;
  bool is_dead = false;
  if (route < 0 || routes_->routes[static_cast<size_t>(route)].kind == Routes::Kind::outgoing) {
    status = {Code::internal, concat("edge ", edge, " does not end on ", self_)};
  } else {
    std::lock_guard lock(mutex_);
    Slot& slot = slots_[static_cast<size_t>(route)];
    if (!status_.is_ok()) {
      status = status_;
    } else if (is_empty(static_cast<size_t>(route))) {
      slot.state = Slot::awaited;
      slot.arrived = std::move(arrived);
      return;
    } else if (slot.state == Slot::there) {
      slot.state = Slot::taken;
      value = std::move(slot.value);
      is_dead = slot.is_dead;
    } else {
      status = {Code::internal, concat("edge ", edge, " was requested twice in one step")};
    }
  }
  arrived(status, std::move(value), is_dead);
}

void StepRendezvous::receive(int peer, Edge edge, Tensor value, bool is_dead) {
  if (peer < 0) return;  // that task has no part in the step
  const int route = routes_->find(edge);
  const TaskName& task = routes_->peers[static_cast<size_t>(peer)];
  const auto refuse = [&](const auto&... why) {
    abort({Code::invalid_argument, concat(task, " sent ", why...)}, -1, /*is_remote=*/true);
  };
  if (route < 0)
    return refuse("a value for edge ", edge, " to ", self_, ", which the graph does not have");
  const Routes::Route& from = routes_->routes[static_cast<size_t>(route)];
  if (from.kind != Routes::Kind::incoming || from.peer != peer)
    return refuse(describe(edge), ", which is not an edge from it to ", self_);
  if (!deliver(static_cast<size_t>(route), std::move(value), is_dead, true))
    refuse(describe(edge), " twice in one step");
}

Tensor StepRendezvous::room_for(int peer, Edge id, DType dtype, const Shape& shape) {
  const int found = routes_->find(id);
  if (peer < 0 || found < 0) return {};
  const auto route = static_cast<size_t>(found);
  const Routes::Route& from = routes_->routes[route];
  const CutEdge& edge = (*edges_)[from.edge];
  if (from.kind != Routes::Kind::incoming || from.peer != peer || edge.place.joint == 0 ||
      dtype != edge.dtype || shape != edge.shape)
    return {};
  std::shared_ptr<Buffer> buffer;
  {
    std::lock_guard lock(mutex_);
    Slot& slot = slots_[route];
    const bool is_due = slot.state == Slot::empty || slot.state == Slot::awaited;
    if (!status_.is_ok() || !is_due || std::exchange(slot.has_room, true)) return {};
    std::weak_ptr<Buffer>& joint = joints_[edge.place.joint];
    buffer = joint.lock();
    if (buffer == nullptr) {
      buffer = Buffer::allocate(edge.place.total);
      buffer->set_joint(edge.place.joint);
      joint = buffer;
    }
  }
  return Tensor(dtype, shape, std::move(buffer), edge.place.offset);
}

bool StepRendezvous::deliver(size_t route, Tensor value, bool is_dead, bool is_remote) {
  Arrived arrived;
  {
    std::lock_guard lock(mutex_);
    if (!status_.is_ok()) return true;
    Slot& slot = slots_[route];
    if (is_empty(route)) {
      slot.state = Slot::there;
      slot.value = std::move(value);
      slot.is_dead = is_dead;
      return true;
    }
    if (slot.state != Slot::awaited) return false;
    slot.state = Slot::taken;
    arrived = std::move(slot.arrived);
  }
  if (is_remote) {  // the rest of the step runs here if it is quick (runtime/lent_thread.h)
    const LentThread::Scope lent;
    arrived({}, std::move(value), is_dead);
  } else {
    arrived({}, std::move(value), is_dead);
  }
  return true;
}

void StepRendezvous::abort(const Status& status, int except, bool is_remote) {
  std::vector<Slot> dropped;
  {
    std::lock_guard lock(mutex_);
    if (!status_.is_ok()) return;
    status_ = status.is_ok() ? Status{Code::aborted, "the step was aborted"} : status;
    dropped.swap(slots_);
    slots_.resize(dropped.size());
  }
  for (size_t peer = 0; peer < channels_.size(); ++peer) {
    if (channels_[peer] && static_cast<int>(peer) != except) channels_[peer]->abort(step_, status_);
  }
  for (Slot& slot : dropped) {
    if (slot.state != Slot::awaited) continue;
    auto call = [arrived = std::move(slot.arrived), status = status_] {
      arrived(status, {}, false);
    };
    if (is_remote && executor_) {
      const WorkSource::Scope source(source_);
      executor_(std::move(call));
    } else {
      call();
    }
  }
}

Status StepRendezvous::status() const {
  std::lock_guard lock(mutex_);
  return status_;
}

std::string StepRendezvous::describe(Edge id) const {
  const int route = routes_->find(id);
  if (route < 0) return concat("edge ", id);
  const CutEdge& edge = (*edges_)[routes_->routes[static_cast<size_t>(route)].edge];
  return concat(edge.tensor_name, " (of node ", edge.producer, ") from ", TaskName::of(edge.source),
                " to ", TaskName::of(edge.destination));
}

std::string StepRendezvous::owed_by(int peer) const {
  std::lock_guard lock(mutex_);
  std::string debt;
  int count = 0;
  for (size_t i = 0; i < slots_.size(); ++i) {
    const Routes::Route& route = routes_->routes[i];
    if (route.kind != Routes::Kind::incoming || route.peer != peer) continue;
    if (slots_[i].state != Slot::empty && slots_[i].state != Slot::awaited) continue;
    if (++count > 3) continue;
    const CutEdge& edge = (*edges_)[route.edge];
    debt += concat(count == 1 ? "" : ", ", edge.tensor_name, " (of node ", edge.producer, ')');
  }
  if (count > 3) debt += concat(" and ", count - 3, " more");
  return count == 0 ? "" : "; " + debt_text(debt);
}

}  // namespace leat
