#include <utility>

#include "distributed/cluster/membership_state.h"
#include "distributed/loss_text.h"

namespace leat {
namespace {

using std::chrono::milliseconds;

PeerState state_of(RpcCause cause) {
  switch (cause) {
    case RpcCause::refused:
      return PeerState::refused;
    case RpcCause::unresolvable:
      return PeerState::unresolvable;
    case RpcCause::untrusted:
      return PeerState::rejected;
    default:
      return PeerState::unreachable;
  }
}

// A task that answers but has not dialled for this long may not know us.
constexpr milliseconds dial_patience{1'500};
constexpr size_t most_learned = 10'000;

// The transport's "host:port: reason" without the address, which is told beside it.
std::string without_address(const std::string& message, const std::string& address) {
  return message.starts_with(address + ": ") ? message.substr(address.size() + 2) : message;
}

}  // namespace

ChannelEvents Membership::State::events_of(const std::shared_ptr<Link>& link) {
  const std::weak_ptr<State> weak = weak_from_this();
  std::weak_ptr<MembershipListener>
      listener;  // it holds the channel, so the channel cannot hold it
  {
    std::lock_guard lock(mutex_);
    listener = listener_;
  }
  return {
      .on_tensor =
          [link, listener](int64_t step, int64_t edge, Tensor value, bool is_dead) {
            if (auto to = listener.lock()) {
              to->received(link->task, step, edge, std::move(value), is_dead);
            }
          },
      .on_abort =
          [link, listener](int64_t step, const Status& status) {
            if (auto to = listener.lock()) to->aborted(link->task, step, status);
          },
      .on_early =
          [link, listener](int64_t step) {
            if (auto to = listener.lock()) to->early(link->task, step);
          },
      .on_control =
          [weak, link](FrameKind kind, const FrameHeader&, const std::string& payload) {
            if (auto state = weak.lock()) state->control(link, kind, payload);
          },
      .on_end =
          [weak, link](const Status& status, RpcCause cause) {
            if (auto state = weak.lock()) state->ended(link, status, cause);
          },
      .phase_of =
          [listener](int64_t step) {
            auto to = listener.lock();
            return to ? to->phase_of(step) : StepPhase::over;
          },
      .room_for =
          [link, listener](int64_t step, int64_t edge, DType dtype, const Shape& shape) {
            auto to = listener.lock();
            return to ? to->room_for(link->task, step, edge, dtype, shape) : Tensor();
          },
      .describe =
          [listener](int64_t step, int64_t edge) {
            auto to = listener.lock();
            return to ? to->describe(step, edge) : concat("edge ", edge);
          },
      .calls = calls,
  };
}

std::shared_ptr<Channel> Membership::State::make_channel(std::shared_ptr<RpcStream> stream,
                                                         const std::shared_ptr<Link>& link) {
  return Channel::create(
      std::move(stream), {.incarnation = self.incarnation, .window = options.window},
      events_of(link),
      [link](const std::shared_ptr<Channel>& channel) { link->channel = channel; });
}

void Membership::State::attempt(Peer& peer) {
  const bool is_called =
      !peer.is_dialled && peer.waiting_since && Clock::now() - *peer.waiting_since > dial_patience;
  if (!peer.is_dialled && !is_called) {
    peer.client->call(
        identify_method, to_slices(encode(Hello{self, peer.task, 0, {}, {}})),
        {.deadline = Clock::now() + options.hello_timeout},
        [weak = weak_from_this(), &peer](const RpcStatus& status, const Bytes& answer) {
          if (auto state = weak.lock()) state->identified(peer, status, answer.to_string());
        });
    return;
  }
  auto link = std::make_shared<Link>();
  link->stream = std::make_shared<SharedMemoryStream>(peer.client->open(connect_method));
  std::shared_ptr<RpcStream> stream = link->stream;
  if (options.wrap_stream) stream = options.wrap_stream(peer.task, std::move(stream));
  link->peer = &peer;
  link->task = peer.task;
  auto channel = make_channel(std::move(stream), link);
  std::string why_again;
  {
    std::lock_guard lock(mutex_);
    why_again = peer.why_lost;
    // It may have ended already; or the peer has come to dial us.
    if (peer.is_attempting && !is_stopping_ && peer.channel == nullptr) {
      peer.channel = channel;
      peer.is_called = is_called;
      peer.waiting_since.reset();
    }
  }
  channel->send_control(FrameKind::hello,
                        encode(Hello{.from = self,
                                     .to = peer.task,
                                     .window = options.window,
                                     .why_again = std::move(why_again),
                                     .proof = {},
                                     .host_link = sharing_ ? sharing_->offer() : ""}));
}

// The answer to our question who is at the address of a peer that will dial us.
void Membership::State::identified(Peer& peer, const RpcStatus& status, const std::string& answer) {
  PeerState state = PeerState::waiting;
  std::string reason = "it has not connected yet";
  if (!status.is_ok()) {
    state = state_of(status.cause);
    reason = without_address(status.message, peer.address);
  } else {
    try {
      if (Status wrong = check_answer(decode_hello(answer), peer.task, peer.address, self);
          !wrong.is_ok()) {
        state = PeerState::rejected;
        reason = wrong.message;
      }
    } catch (const Error& error) {
      state = PeerState::unreachable;
      reason = error.message();
    }
  }
  std::unique_lock lock(mutex_);
  peer.is_attempting = false;
  peer.next_attempt = Clock::now() + options.retry;
  if (state != PeerState::waiting || peer.state == PeerState::connected) {
    peer.waiting_since.reset();
  } else if (!peer.waiting_since) {
    peer.waiting_since = Clock::now();
  }
  // What the peer was told when it tried is worth more than that its address answers.
  const bool knows_better = state == PeerState::waiting && peer.state == PeerState::rejected;
  if (peer.state != PeerState::connected && !knows_better)
    set(lock, peer, state, std::move(reason));
}

void Membership::State::accept(std::shared_ptr<RpcStream> stream) {
  {
    std::lock_guard lock(mutex_);
    if (!is_started_ || is_stopping_) return stream->close();  // the peer tries again
  }
  auto link = std::make_shared<Link>();
  link->names = stream->peer_names();
  link->stream = std::make_shared<SharedMemoryStream>(std::move(stream));
  // Known before its first event: the stream is read once the channel has been made.
  Channel::create(link->stream, {.incarnation = self.incarnation, .window = options.window},
                  events_of(link), [&](const std::shared_ptr<Channel>& made) {
                    link->channel = made;
                    std::lock_guard lock(mutex_);
                    unknown_.emplace(made.get(), std::pair(made, Clock::now()));
                  });
}

void Membership::State::control(const std::shared_ptr<Link>& link, FrameKind kind,
                                const std::string& payload) {
  const auto channel = link->channel.lock();
  if (!channel) return;
  switch (kind) {
    case FrameKind::hello:
      check(link->peer == nullptr, "the task that was dialled greeted first");
      return hello_came(link, decode_hello(payload));
    case FrameKind::welcome:
      check(link->peer != nullptr, "a task that dialled sent an answer");
      return answer_came(link, decode_hello(payload));
    case FrameKind::refusal: {
      check(link->peer != nullptr && !payload.empty(), "a task that dialled sent a refusal");
      const auto code = static_cast<Code>(payload[0]);
      std::unique_lock lock(mutex_);
      if (code == Code::already_exists) {
        if (!owned_since_) owned_since_ = Clock::now();
        owner_ = payload.substr(1);
      }
      link->peer->has_channel_failed = true;
      return set(lock, *link->peer,
                 code == Code::unavailable ? PeerState::connecting : PeerState::rejected,
                 payload.substr(1));
    }
    case FrameKind::goodbye: {
      std::lock_guard lock(mutex_);
      if (link->peer != nullptr) link->peer->has_left = true;
      return;
    }
    default:
      return;
  }
}

Membership::State::Peer* Membership::State::find(const TaskName& task) {
  std::lock_guard lock(mutex_);
  const auto found = peers_.find(task);
  return found == peers_.end() ? nullptr : found->second.get();
}

// One that our spec does not have. Null for our own task, or if there are too many.
Membership::State::Peer* Membership::State::learn(const Hello& hello, const std::string& address) {
  if (hello.from.task == self.task) return nullptr;
  std::lock_guard lock(mutex_);
  if (learned_ == most_learned) return nullptr;
  auto peer = std::make_unique<Peer>();
  peer->task = hello.from.task;
  peer->address = address;
  peer->is_learned = true;
  ++learned_;
  return peers_.emplace(hello.from.task, std::move(peer)).first->second.get();
}

void Membership::State::refuse(const std::shared_ptr<Link>& link, Peer* peer,
                               const Status& status) {
  const auto channel = link->channel.lock();
  if (!channel) return;
  channel->send_control(FrameKind::refusal,
                        std::string(1, static_cast<char>(status.code)) + status.message);
  channel->close();
  std::unique_lock lock(mutex_);
  if (peer != nullptr && peer->state != PeerState::connected && status.code != Code::unavailable) {
    set(lock, *peer, PeerState::rejected, status.message);
  }
}

void Membership::State::hello_came(const std::shared_ptr<Link>& link, const Hello& hello) {
  const auto channel = link->channel.lock();
  if (!channel) return;
  Peer* peer = find(hello.from.task);
  if (options.tls != nullptr &&
      certified_peer(link->names, self.cluster_id).task() != hello.from.task) {
    // The peer stays as it is: a stranger says nothing about it.
    const Status status{Code::permission_denied,
                        concat("the certificate names ", names_text(link->names), ", not ",
                               hello.from.task, ", which it claims to be")};
    std::cerr << "leat: "
              << concat(self.task, " refused ", channel->peer(), ": ", status.message, "\n")
              << std::flush;
    return refuse(link, nullptr, status);
  }
  if (Status status = check_hello(hello, self); !status.is_ok()) return refuse(link, peer, status);
  if (peer == nullptr) peer = learn(hello, channel->peer());
  if (peer == nullptr) {
    return refuse(
        link, nullptr,
        {Code::failed_precondition, concat(hello.from.task, " (process ", hello.from.process,
                                           ") cannot be a peer of ", self.to_string())});
  }
  // Soon: it is here, so it will answer.
  if (peer->is_dialled) {
    return refuse(link, nullptr,
                  {Code::unavailable, concat(self.task, " will dial this task itself")});
  }
  Status taken;
  {
    std::lock_guard lock(mutex_);
    if (is_stopping_) return;
    if (peer->channel && peer->is_called && peer->state != PeerState::connected) {
      taken = {Code::unavailable, concat(self.task, " was about to dial it")};
    } else if (peer->channel) {
      // The owner itself, whose loss we have not seen yet, need only come again.
      const bool is_same = peer->incarnation == hello.from.incarnation;
      taken.code = is_same ? Code::unavailable : Code::already_exists;
      taken.message =
          is_same ? concat(self.task, " has not seen the end of the last connection yet")
                  : concat(hello.from.task, " has an owner already: process ", peer->process,
                           " at ", peer->channel->peer(), ", ", heard_text(*peer), "; process ",
                           hello.from.process, " is refused by ", self.task);
    } else {
      peer->channel = channel;
      peer->process = hello.from.process;
      peer->incarnation = hello.from.incarnation;
      unknown_.erase(channel.get());
      link->peer = peer;
      link->task = peer->task;
    }
  }
  if (!taken.is_ok()) {
    if (taken.code == Code::unavailable) {
      std::shared_ptr<Channel> old;
      {
        std::lock_guard lock(mutex_);
        old = peer->channel;
      }
      std::string why = "it connected again";
      if (!hello.why_again.empty())
        why += concat(", because it had lost ", self.task, ": ", hello.why_again);
      if (old) old->cut({Code::unavailable, why});
    }
    return refuse(link, peer, taken);
  }
  auto memory = sharing_ ? sharing_->hand_over(hello.host_link, concat(hello.from.task))
                         : HostSharing::HandedOver{};
  channel->send_control(FrameKind::welcome, encode(Hello{.from = self,
                                                         .to = hello.from.task,
                                                         .window = options.window,
                                                         .why_again = {},
                                                         .proof = {},
                                                         .host_link = memory.id}));
  share_memory(link, std::move(memory.link));
  connected(link, hello);
}

void Membership::State::answer_came(const std::shared_ptr<Link>& link, const Hello& hello) {
  Peer& peer = *link->peer;
  if (Status status = check_answer(hello, peer.task, peer.address, self); !status.is_ok()) {
    {
      std::unique_lock lock(mutex_);
      peer.has_channel_failed = true;
      set(lock, peer, PeerState::rejected, status.message);
    }
    if (const auto channel = link->channel.lock()) channel->cut(status);
    return;
  }
  {
    std::lock_guard lock(mutex_);
    peer.process = hello.from.process;
    owned_since_.reset();
  }
  share_memory(link, sharing_ && !hello.host_link.empty()
                         ? sharing_->take(hello.host_link, concat(peer.task))
                         : nullptr);
  connected(link, hello);
}

// What either end writes from now on goes through `memory`, if there is any.
void Membership::State::share_memory(const std::shared_ptr<Link>& link,
                                     std::unique_ptr<HostLink> memory) {
  const bool is_shared = memory != nullptr;
  if (is_shared) link->stream->switch_to(std::move(memory), sharing_->poller(), Lending::allowed);
  std::lock_guard lock(mutex_);
  link->peer->shares_memory = is_shared;
}

void Membership::State::connected(const std::shared_ptr<Link>& link, const Hello& hello) {
  const auto channel = link->channel.lock();
  if (!channel) return;
  const std::lock_guard in_order(link->order);
  if (link->has_ended) return;
  Peer& peer = *link->peer;
  channel->admit(hello.from.incarnation, hello.window);
  {
    std::lock_guard lock(mutex_);
    if (is_stopping_) return;
    peer.channel = channel;
    peer.incarnation = hello.from.incarnation;
    peer.has_left = false;
    peer.why_lost.clear();
    link->is_connected = true;
  }
  listener_->connected(peer.task, hello.from.incarnation, channel);
  if (link->has_ended) return;
  std::unique_lock lock(mutex_);
  peer.is_attempting = false;
  peer.waiting_since.reset();
  set(lock, peer, PeerState::connected, "");
}

void Membership::State::ended(const std::shared_ptr<Link>& link, const Status& status,
                              RpcCause cause) {
  const auto channel = link->channel.lock();
  std::shared_ptr<Channel> kept;  // the last handle goes outside the locks
  const std::lock_guard in_order(link->order);
  link->has_ended = true;
  std::unique_lock lock(mutex_);
  if (auto found = unknown_.find(channel.get()); found != unknown_.end()) {
    kept = std::move(found->second.first);
    unknown_.erase(found);
  }
  Peer* peer = link->peer;
  if (peer == nullptr || is_stopping_) return;
  // An attempt that failed heard nothing.
  if (link->is_connected) peer->heard = channel->last_heard();
  if (!link->is_connected) {
    if (peer->channel == channel) kept = std::move(peer->channel);
    peer->is_attempting = false;
    peer->is_called = false;
    peer->next_attempt = Clock::now() + options.retry;
    if (std::exchange(peer->has_channel_failed, false)) return;
    if (status.is_ok()) return set(lock, *peer, PeerState::connecting, "it is not ready yet");
    return set(lock, *peer, state_of(cause), without_address(status.message, peer->address));
  }
  std::string reason =
      peer->has_left ? "it was stopped" : without_address(status.message, peer->address);
  if (reason.empty()) reason = "it closed the connection";
  if (status.code == Code::data_loss) reason += concat(" (between it and ", self.task, ")");
  peer->why_lost = reason;
  reason += own_pause_text();
  const Status lost{Code::unavailable,
                    concat(peer->task, " (", peer->address, ") is gone: ", reason)};
  const Clock::time_point heard = *peer->heard;
  // peer->channel stays, and no attempt begins, until the loss has been told.
  peer->is_attempting = true;
  peer->attempt_begin = Clock::now();
  set(lock, *peer, PeerState::lost, std::move(reason));
  listener_->lost(link->task, lost, heard);
  if (on_lost) {
    const Status told{lost.code, concat(lost.message, ", ", leat::heard_text(heard))};
    call_out("on_lost", [&] { on_lost(link->task, told); });
  }
  lock.lock();
  kept = std::move(peer->channel);
  peer->is_attempting = false;
  peer->is_called = false;
  peer->next_attempt = Clock::now();  // a short break need not last
}

}  // namespace leat
