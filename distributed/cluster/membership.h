// The tasks that this one is connected to, and the reasons for the others: one stream per pair of
// tasks, identities checked when it opens, heartbeats while it lives.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "core/error.h"
#include "distributed/cluster/cluster_spec.h"
#include "distributed/cluster/identity.h"
#include "distributed/cluster/tls.h"
#include "distributed/wire/channel.h"

namespace leat {

class RpcServer;

struct MembershipOptions {
  std::chrono::milliseconds heartbeat{500};  // interval
  std::chrono::milliseconds silence{6'000};  // a peer that is silent for this long is lost
  std::chrono::milliseconds retry{250};      // between attempts to connect
  std::chrono::milliseconds hello_timeout{5'000};
  std::shared_ptr<const RpcTls> tls = {};  // null: plaintext, and every hello is trusted
  uint64_t window = uint64_t{64} << 20;    // bytes under way from one peer (channel.h)
  // For tests: puts something between this task and a stream that it dialled
  // (tests/support/faulty_stream.h).
  std::function<std::shared_ptr<RpcStream>(const TaskName& peer, std::shared_ptr<RpcStream>)>
      wrap_stream = {};
};

enum class PeerState : uint8_t {
  waiting,       // it must dial us and has not yet; we can reach its address
  connecting,    // no answer yet
  refused,       // nobody listens there
  unresolvable,  // its host has no address
  unreachable,   // no route, no answer, or not Leat
  rejected,      // wrong identity, version or cluster, on either side; the reason names both
  connected,
  lost,  // was connected
};
std::string_view peer_state_name(PeerState state);

struct PeerStatus {
  TaskName task;
  std::string address;
  PeerState state = PeerState::connecting;
  std::string reason;                        // of the last failure; "" when connected
  uint64_t incarnation = 0;                  // of the last connection; 0: none yet
  std::chrono::milliseconds last_heard{-1};  // ago; -1: never
  bool shares_memory = false;                // connected, and tensors go through shared memory
};

// Gets connections and the data over them: the data plane (rendezvous_router.h). Calls for one peer
// come in order and never overlap: connected; early, received or aborted any number of times; lost,
// connected, …; on transport threads.
class MembershipListener {
 public:
  virtual ~MembershipListener() = default;
  // `incarnation` is the process's: a new process has none of the earlier steps.
  virtual void connected(const TaskName& peer, uint64_t incarnation,
                         std::shared_ptr<Channel> channel) = 0;
  // UNAVAILABLE: "/job:ps/task:0 (127.0.0.1:2222) is gone: the peer closed the connection". `heard`
  // is separate because its age grows (heard_text()).
  virtual void lost(const TaskName& peer, const Status& status,
                    std::chrono::steady_clock::time_point heard) = 0;
  virtual void received(const TaskName& peer, int64_t step, int64_t edge, Tensor value,
                        bool is_dead) = 0;
  // The first bytes of a value for a step that has not begun here. They hold a part of the peer's
  // window until the step begins or is settled (channel.h).
  virtual void early(const TaskName& peer, int64_t step) = 0;
  virtual void aborted(const TaskName& peer, int64_t step, const Status& status) = 0;
  virtual StepPhase phase_of(int64_t step) = 0;  // from any thread
  // Where a tensor is received (channel.h).
  virtual Tensor room_for(const TaskName& /*peer*/, int64_t /*step*/, int64_t /*edge*/,
                          DType /*dtype*/, const Shape& /*shape*/) {
    return {};
  }
  // An edge of a step that runs here, for messages (channel.h).
  virtual std::string describe(int64_t step, int64_t edge) = 0;
  virtual void tick() {}  // with every heartbeat, on membership's thread
};

// Thread-safe. Of two tasks, the greater one (by job, then index) dials; the lesser one dials if it
// sees that the greater one does not. Descriptions may be sparse: of two tasks only one need know
// the other, which learns of it when dialled. A task does not wait for tasks outside its own
// description. Attempts go on for ever, also after a loss. A restarted task is connected again,
// with its new incarnation, once the old one is known to be gone. Two processes for one task are
// never connected at once: the second is refused and learns who owns the task.
class Membership {
 public:
  explicit Membership(TaskIdentity self, MembershipOptions options = {});
  // Says goodbye and closes all streams. Afterwards neither on_lost nor on_change is called: waits
  // for a running callback, and ends the process if that does not return within 10 s. Not from such
  // a callback.
  ~Membership();
  Membership(const Membership&) = delete;

  const TaskIdentity& self() const;
  // Adds the methods that peers call to a server that has not been started.
  void attach(RpcServer& server);
  // Begins to connect to all other tasks of `spec`.
  void start(const ClusterSpec& spec, std::shared_ptr<MembershipListener> listener);
  // Also called after MembershipListener::lost, with its status and ", last heard 0.2 s ago". Set
  // before start().
  void on_lost(std::function<void(const TaskName& peer, const Status& status)> callback);
  // Called when a peer's state or reason has changed. Set before start().
  void on_change(std::function<void(const PeerStatus& peer)> callback);

  // What connected peers may call on their channels (channel_calls.h). Set before start().
  void serve_calls(CallHandlers handlers);
  // The channel to a connected peer; null if there is none.
  std::shared_ptr<Channel> channel(const TaskName& task) const;

  // Waits for `tasks` (empty: all). UNAVAILABLE after `limit`, with a table of the missing tasks;
  // ALREADY_EXISTS earlier, when a peer insists that this task has another owner.
  void wait_until_connected(std::chrono::milliseconds limit = std::chrono::seconds(60),
                            std::span<const TaskName> tasks = {}) const;

  std::vector<PeerStatus> peers() const;
  PeerStatus peer(const TaskName& task) const;  // NOT_FOUND if it is not in the spec
  bool is_connected(const TaskName& task) const;
  bool is_lost(const TaskName& task) const;            // it was connected and no longer is
  std::string last_heard(const TaskName& task) const;  // "last heard 4.2 s ago", "never heard from"
  // OK if connected; else UNAVAILABLE, with address, state and reason.
  Status status_of(const TaskName& task) const;
  // A line per task: name, address, state, reason. Only those that are not connected, or all.
  std::string table(bool only_missing = false) const;

 private:
  class State;
  std::shared_ptr<State> state_;
};

}  // namespace leat
