// Membership's state and logic, behind its handle. Internal to membership*.cc: membership.cc has
// its life and its reports, membership_links.cc how connections come and go.
//
// Life of a connection: the greater task opens a stream and says hello; the other one checks it and
// answers welcome or refusal. From then on both send heartbeats. When the stream ends, or is cut
// because its peer was silent too long, the loss is reported. Only then may a new connection take
// its place, so that the listener hears all in order.
#pragma once

#include <chrono>
#include <condition_variable>
#include <iostream>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <utility>

#include "distributed/cluster/host_sharing.h"
#include "distributed/cluster/membership.h"
#include "distributed/grpc/rpc_client.h"
#include "distributed/wire/channel.h"
#include "distributed/wire/shared_memory_stream.h"
#include "runtime/step_activity.h"

namespace leat {

class Membership::State : public std::enable_shared_from_this<Membership::State> {
 public:
  using Clock = std::chrono::steady_clock;
  static constexpr const char* connect_method = "/leat.Channel/Connect";

  State(TaskIdentity self, MembershipOptions options)
      : self(std::move(self)), options(std::move(options)) {}

  void start(const ClusterSpec& spec, std::shared_ptr<MembershipListener> to);
  void stop();
  void accept(std::shared_ptr<RpcStream> stream);

  std::vector<PeerStatus> peers() const;
  PeerStatus peer(const TaskName& task) const;
  std::shared_ptr<Channel> channel(const TaskName& task) const;
  std::string last_heard(const TaskName& task) const;
  Status status_of(const TaskName& task) const;
  std::string table(bool only_missing) const;
  void wait(std::chrono::milliseconds limit, std::span<const TaskName> tasks) const;

  const TaskIdentity self;
  const MembershipOptions options;
  std::function<void(const TaskName&, const Status&)> on_lost;
  std::function<void(const PeerStatus&)> on_change;
  CallHandlers calls;

 private:
  struct Peer {
    TaskName task;
    std::string address;
    bool is_dialled = false;  // we dial it; otherwise it dials us, and we only probe its address
    bool is_learned = false;  // our spec does not have it: it dialled us
    bool is_called = false;   // we try to dial it, because it does not dial us
    std::optional<Clock::time_point> waiting_since;  // it answers but does not dial us
    std::unique_ptr<RpcClient> client;
    PeerState state = PeerState::connecting;
    std::string reason;
    std::string why_lost;   // of the last connection, until there is another
    std::string process;    // "host:pid", of the last connection
    bool has_left = false;  // it said goodbye
    uint64_t incarnation = 0;
    std::shared_ptr<Channel> channel;  // connected (until its loss is reported), or the attempt
    bool is_attempting = false;
    bool has_channel_failed = false;  // the attempt's failure has been reported
    Clock::time_point attempt_begin, next_attempt;
    std::optional<Clock::time_point> heard;  // last time, once the channel is gone
    bool shares_memory = false;              // the last connection
  };
  // One stream to or from a peer, as its events see it; they may outlive this State.
  struct Link {
    std::weak_ptr<Channel> channel;
    std::shared_ptr<SharedMemoryStream> stream;  // the channel's
    Peer* peer = nullptr;                        // null until an accepted stream says hello
    TaskName task;                               // the peer's
    bool is_connected = false;
    // connected() and ended() hold it while they call the listener, so that the listener never
    // hears of the end before the beginning. It is locked before mutex_. It is recursive because
    // the listener's answer to connected() may end the link.
    std::recursive_mutex order;
    bool has_ended = false;          // guarded by `order`
    std::vector<std::string> names;  // in the certificate of the task that dialled us
  };

  ChannelEvents events_of(const std::shared_ptr<Link>& link);
  std::shared_ptr<Channel> make_channel(std::shared_ptr<RpcStream> stream,
                                        const std::shared_ptr<Link>& link);
  void share_memory(const std::shared_ptr<Link>& link, std::unique_ptr<HostLink> memory);
  void control(const std::shared_ptr<Link>& link, FrameKind kind, const std::string& payload);
  void hello_came(const std::shared_ptr<Link>& link, const Hello& hello);
  void answer_came(const std::shared_ptr<Link>& link, const Hello& hello);
  void refuse(const std::shared_ptr<Link>& link, Peer* peer, const Status& status);
  void connected(const std::shared_ptr<Link>& link, const Hello& hello);
  void ended(const std::shared_ptr<Link>& link, const Status& status, RpcCause cause);
  Peer* find(const TaskName& task);
  Peer* learn(const Hello& hello, const std::string& address);
  void identified(Peer& peer, const RpcStatus& status, const std::string& answer);

  void run();  // the thread: heartbeats, silence, attempts
  void attempt(Peer& peer);
  void set(std::unique_lock<std::mutex>& lock, Peer& peer, PeerState state, std::string reason);
  PeerStatus describe(const Peer& peer) const;
  std::string heard_text(const Peer& peer) const;
  // "; /job:worker/task:0 itself was frozen for 7.0 s" if that made the others give it up: losses
  // that it reports just afterwards are not the others' fault. Under the lock.
  std::string own_pause_text() const;
  Status status_of(const Peer& peer) const;

  // Calls a user's callback: none begins after stop(), which waits for running ones. An exception
  // is logged and changes nothing: a lost peer stays lost.
  template <class Call>
  void call_out(const char* name, Call&& call) {
    {
      std::lock_guard lock(mutex_);
      if (is_stopping_) return;
      ++calls_;
    }
    try {
      call();
    } catch (...) {
      std::cerr << "leat: " << self.task << ": the callback " << name
                << " threw: " << status_of_current_exception().message << std::endl;
    }
    std::lock_guard lock(mutex_);
    --calls_;
    changed_.notify_all();
  }

  std::optional<HostSharing> sharing_;  // from the start on, unless the spec says no
  mutable std::mutex mutex_;
  mutable std::condition_variable changed_;
  // After the start, learned peers are added; none is removed.
  std::map<TaskName, std::unique_ptr<Peer>> peers_;
  size_t learned_ = 0;
  std::map<Channel*, std::pair<std::shared_ptr<Channel>, Clock::time_point>>
      unknown_;  // accepted, before hello
  std::shared_ptr<MembershipListener> listener_;
  std::optional<Clock::time_point> owned_since_;  // a peer says that this task has another owner
  std::string owner_;
  int calls_ = 0;
  Clock::time_point last_round_;  // of the thread; a pause shows that this process did not run
  Clock::duration pause_{0};      // the last long one
  Clock::time_point woke_;        // when it ended
  bool is_started_ = false;
  bool is_stopping_ = false;
  std::thread thread_;
};

}  // namespace leat
