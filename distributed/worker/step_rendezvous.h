// One step's rendezvous on one task, and the destinations of its edges. Internal to the router
// (rendezvous_router.h).
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <unordered_map>
#include <vector>

#include "core/execution/work_source.h"
#include "core/rendezvous.h"
#include "distributed/cluster/cluster_spec.h"
#include "distributed/wire/channel.h"
#include "graph/passes/pipeline.h"

namespace leat {

// The edges of a registered graph as one task sees them. Made once per graph, shared by its steps.
struct Routes {
  enum class Kind : uint8_t { local, outgoing, incoming };
  struct Route {
    Kind kind = Kind::local;
    int peer = -1;    // into peers
    size_t edge = 0;  // into the list of edges
    bool repeats = false;
  };
  std::vector<Route> routes;
  std::unordered_map<int64_t, int32_t> by_id;  // edge id → route
  std::vector<TaskName> peers;
  const std::vector<TaskName>* lasting_peers = nullptr;  // the same; outlives the graph

  Routes(const std::vector<CutEdge>& edges, const TaskName& self);
  int find(int64_t edge) const;                // into routes; -1: not of this task
  int peer_index(const TaskName& task) const;  // into peers; -1: no edge to or from it
};

// Thread-safe.
class StepRendezvous final : public Rendezvous {
 public:
  using Executor = std::function<void(std::function<void()>)>;

  StepRendezvous(int64_t step, std::shared_ptr<const std::vector<CutEdge>> edges,
                 std::shared_ptr<const Routes> routes, TaskName self, Executor executor);
  // Before the step is used: sets the channel to one of its peers.
  void set_channel(size_t peer, std::shared_ptr<Channel> channel) {
    channels_[peer] = std::move(channel);
  }

  void send(Edge edge, Tensor value, bool is_dead) override;
  void recv(Edge edge, Arrived arrived) override;
  void abort(const Status& status) override { abort(status, /*except=*/-1, /*is_remote=*/false); }

  // A value from another task of the step. A value that the edges do not announce (no such edge
  // from that task, a second value) aborts the step with INVALID_ARGUMENT.
  void receive(int peer, Edge edge, Tensor value, bool is_dead);
  // Where a value from that task is received, once; an invalid tensor if anywhere (CutEdge::place).
  Tensor room_for(int peer, Edge edge, DType dtype, const Shape& shape);
  // `except` is the peer that already knows. If remote, the executor runs the consequences.
  void abort(const Status& status, int except, bool is_remote);

  const std::shared_ptr<const Routes>& routes() const { return routes_; }
  Status status() const;  // OK unless it was aborted
  // "edge_7_w (of node w) from /job:ps/task:0 to /job:worker/task:1".
  std::string describe(Edge edge) const;
  // "; it owed edge_7_w (of node w) and 3 more": values still missing from a peer.
  std::string owed_by(int peer) const;

 private:
  struct Slot {
    // For an edge that repeats, `taken` counts as `empty` for the next value.
    enum State : uint8_t { empty, awaited, there, taken } state = empty;
    bool is_dead = false;
    bool has_room = false;  // it was given
    Tensor value;
    Arrived arrived;
  };

  bool is_empty(size_t route) const {
    const Slot::State state = slots_[route].state;
    return state == Slot::empty || (state == Slot::taken && routes_->routes[route].repeats);
  }
  // False if the edge already has a value.
  bool deliver(size_t route, Tensor value, bool is_dead, bool is_remote);

  const int64_t step_;
  const std::shared_ptr<const std::vector<CutEdge>> edges_;
  const std::shared_ptr<const Routes> routes_;
  const TaskName self_;
  const Executor executor_;
  const WorkSource::Id source_ = WorkSource::of_thread();
  mutable std::mutex mutex_;
  std::vector<Slot> slots_;  // by route
  // By number. What is received holds them: nothing else may, so that they can change in place.
  std::map<int64_t, std::weak_ptr<Buffer>> joints_;
  Status status_;                                   // once aborted
  std::vector<std::shared_ptr<Channel>> channels_;  // by peer; fixed once the step is open
};

}  // namespace leat
