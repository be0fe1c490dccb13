#include "distributed/cluster/membership.h"

#include <algorithm>
#include <cstdlib>
#include <iostream>

#include "core/memory/memory_limit.h"
#include "core/text_table.h"
#include "distributed/cluster/membership_state.h"
#include "distributed/grpc/rpc_server.h"
#include "distributed/loss_text.h"

namespace leat {

using std::chrono::milliseconds;

namespace {

constexpr milliseconds callback_limit{10'000};

}  // namespace

std::string_view peer_state_name(PeerState state) {
  switch (state) {
    case PeerState::waiting:
      return "waiting";
    case PeerState::connecting:
      return "connecting";
    case PeerState::refused:
      return "refused";
    case PeerState::unresolvable:
      return "unresolvable";
    case PeerState::unreachable:
      return "unreachable";
    case PeerState::rejected:
      return "rejected";
    case PeerState::connected:
      return "connected";
    case PeerState::lost:
      return "lost";
  }
  return "?";
}

// ---- Life ----

void Membership::State::start(const ClusterSpec& spec, std::shared_ptr<MembershipListener> to) {
  std::lock_guard lock(mutex_);
  check(!is_started_, "membership of ", self.task, " was started twice");
  check(spec.contains(self.task), self.task, " is not in the cluster spec: ", spec.to_json());
  listener_ = std::move(to);
  if (spec.shares_memory()) {
    sharing_.emplace(concat(self.task));
    sharing_->open_region();
  }
  for (const TaskName& task : spec.tasks()) {
    if (task == self.task) continue;
    auto peer = std::make_unique<Peer>();
    peer->task = task;
    peer->address = spec.address(task);
    peer->is_dialled = task < self.task;
    peer->client = std::make_unique<RpcClient>(
        peer->address, RpcClientOptions{.largest_message = largest_message(),
                                        .tls = options.tls,
                                        .check_server = is_task(task, self.cluster_id)});
    peer->next_attempt = Clock::now();
    peers_.emplace(task, std::move(peer));
  }
  is_started_ = true;
  last_round_ = Clock::now();
  thread_ = std::thread([this] { run(); });
}

void Membership::State::stop() {
  std::vector<std::shared_ptr<Channel>> channels;
  {
    std::unique_lock lock(mutex_);
    if (is_stopping_) return;
    is_stopping_ = true;
    changed_.notify_all();
    if (!changed_.wait_for(lock, callback_limit, [&] { return calls_ == 0; })) {
      // Its user cannot be destroyed while the callback runs, and cannot wait for it for ever.
      std::cerr << "leat: " << self.task
                << " cannot stop: a callback (on_lost or on_change) has not "
                << "returned for " << seconds_text(callback_limit) << "; giving up" << std::endl;
      std::abort();
    }
    for (auto& [task, peer] : peers_) {
      if (peer->channel) channels.push_back(std::move(peer->channel));
    }
    for (auto& [key, channel] : unknown_) channels.push_back(std::move(channel.first));
    unknown_.clear();
  }
  if (thread_.joinable()) thread_.join();
  for (auto& channel : channels) channel->close();
  // Goodbyes leave before the connections go.
  const auto limit = Clock::now() + milliseconds(200);
  for (auto& channel : channels) {
    while (!channel->is_ended() && Clock::now() < limit)
      std::this_thread::sleep_for(milliseconds(1));
  }
  for (auto& [task, peer] : peers_)
    if (peer->client != nullptr) peer->client->close(milliseconds(1'000));
}

void Membership::State::run() {
  const auto period = std::min({options.heartbeat, options.retry, milliseconds(100)});
  auto next_heartbeat = Clock::now();
  std::unique_lock lock(mutex_);
  last_round_ = Clock::now();
  while (!is_stopping_) {
    const auto now = Clock::now();
    // If this process itself did not run (stopped, or a machine that sleeps), nobody else was
    // silent.
    const auto pause = now - last_round_;
    last_round_ = now;
    const bool was_away = pause > options.silence / 4 + period;
    if (was_away) {
      pause_ = pause;
      woke_ = now;
    }
    const bool beats = now >= next_heartbeat;
    if (beats) next_heartbeat = now + options.heartbeat;

    std::vector<std::shared_ptr<Channel>> to_beat;
    std::vector<std::pair<std::shared_ptr<Channel>, Status>> to_cut;
    std::vector<Peer*> to_dial;
    for (auto& [task, peer] : peers_) {
      if (peer->state == PeerState::connected) {
        const auto silent = now - peer->channel->silent_since();
        if (was_away)
          peer->channel->forgive_silence();
        else if (silent > options.silence) {
          to_cut.emplace_back(
              peer->channel,
              Status{Code::unavailable, concat("it has been silent for ", seconds_text(silent))});
        }
        if (beats) to_beat.push_back(peer->channel);
      } else if (peer->is_attempting) {
        if ((peer->is_dialled || peer->is_called) && peer->channel &&
            now - peer->attempt_begin > options.hello_timeout) {
          to_cut.emplace_back(peer->channel, Status{Code::unavailable,
                                                    concat("no answer to the greeting for ",
                                                           seconds_text(options.hello_timeout))});
        }
      } else if (peer->client != nullptr && now >= peer->next_attempt) {
        peer->is_attempting = true;
        peer->attempt_begin = now;
        to_dial.push_back(peer.get());
      }
    }
    for (auto& [key, channel] : unknown_) {
      if (now - channel.second > options.hello_timeout) {
        to_cut.emplace_back(channel.first, Status{Code::unavailable, "no greeting came"});
      }
    }
    lock.unlock();
    for (auto& channel : to_beat) channel->heartbeat();
    if (beats) listener_->tick();
    for (auto& [channel, reason] : to_cut) channel->cut(reason);
    for (Peer* peer : to_dial) attempt(*peer);
    lock.lock();
    changed_.wait_for(lock, period, [&] { return is_stopping_; });
  }
}

// ---- Telling ----

// Leaves the lock open.
void Membership::State::set(std::unique_lock<std::mutex>& lock, Peer& peer, PeerState state,
                            std::string reason) {
  const bool is_new = peer.state != state || peer.reason != reason;
  peer.state = state;
  peer.reason = std::move(reason);
  changed_.notify_all();
  const PeerStatus status = describe(peer);
  lock.unlock();
  if (is_new && on_change) call_out("on_change", [&] { on_change(status); });
}

PeerStatus Membership::State::describe(const Peer& peer) const {
  PeerStatus status{.task = peer.task,
                    .address = peer.address,
                    .state = peer.state,
                    .reason = peer.reason,
                    .incarnation = peer.incarnation,
                    .shares_memory = peer.state == PeerState::connected && peer.shares_memory};
  const auto heard =
      peer.state == PeerState::connected && peer.channel ? peer.channel->last_heard() : peer.heard;
  if (heard && peer.incarnation != 0) {
    status.last_heard = std::chrono::duration_cast<milliseconds>(Clock::now() - *heard);
  }
  return status;
}

std::shared_ptr<Channel> Membership::State::channel(const TaskName& task) const {
  std::lock_guard lock(mutex_);
  const auto found = peers_.find(task);
  if (found == peers_.end() || found->second->state != PeerState::connected) return nullptr;
  return found->second->channel;
}

std::string Membership::State::heard_text(const Peer& peer) const {
  const PeerStatus status = describe(peer);
  return status.last_heard.count() < 0 ? "never heard from" : leat::heard_text(status.last_heard);
}

std::string Membership::State::own_pause_text() const {
  constexpr milliseconds excused{2'000};
  const auto now = Clock::now();
  // Others may be heard before the thread has woken.
  const auto pause = now - last_round_ > options.silence / 4 ? now - last_round_
                     : now - woke_ < excused                 ? pause_
                                                             : Clock::duration::zero();
  if (!is_started_ || pause + options.heartbeat < options.silence) return {};
  return concat("; ", self.task, " itself was frozen for ", seconds_text(pause));
}

Status Membership::State::status_of(const Peer& peer) const {
  if (peer.state == PeerState::connected) return {};
  std::string text =
      concat(peer.task, " (", peer.address, ") is not connected: ", peer_state_name(peer.state));
  if (!peer.reason.empty()) text += ": " + peer.reason;
  return {Code::unavailable, text + ", " + heard_text(peer)};
}

std::vector<PeerStatus> Membership::State::peers() const {
  std::lock_guard lock(mutex_);
  std::vector<PeerStatus> out;
  for (const auto& [task, peer] : peers_)
    if (!peer->is_learned || peer->state == PeerState::connected) out.push_back(describe(*peer));
  return out;
}

PeerStatus Membership::State::peer(const TaskName& task) const {
  std::lock_guard lock(mutex_);
  const auto found = peers_.find(task);
  if (found == peers_.end()) fail(Code::not_found, task, " is not a peer of ", self.task);
  return describe(*found->second);
}

std::string Membership::State::last_heard(const TaskName& task) const {
  std::lock_guard lock(mutex_);
  const auto found = peers_.find(task);
  return found == peers_.end() ? "" : heard_text(*found->second) + own_pause_text();
}

Status Membership::State::status_of(const TaskName& task) const {
  std::lock_guard lock(mutex_);
  if (task == self.task) return {};
  const auto found = peers_.find(task);
  if (found == peers_.end())
    return {Code::unavailable, concat(task, " is not in the cluster spec of ", self.task)};
  return status_of(*found->second);
}

std::string Membership::State::table(bool only_missing) const {
  std::vector<std::vector<std::string>> rows;
  for (const PeerStatus& peer : peers()) {
    if (only_missing && peer.state == PeerState::connected) continue;
    rows.push_back({concat("  ", peer.task), peer.address, std::string(peer_state_name(peer.state)),
                    peer.reason});
  }
  return aligned(rows);
}

void Membership::State::wait(milliseconds limit, std::span<const TaskName> tasks) const {
  const auto begin = Clock::now();
  const auto end = begin + limit;
  const auto patience =
      options.silence + milliseconds(3'000);  // a dead owner is known to be dead by then
  std::unique_lock lock(mutex_);
  const auto missing = [&] {
    size_t count = 0;
    for (const auto& [task, peer] : peers_) {
      const bool is_asked = tasks.empty()
                                ? !peer->is_learned
                                : std::find(tasks.begin(), tasks.end(), task) != tasks.end();
      count += is_asked && peer->state != PeerState::connected ? 1 : 0;
    }
    return count;
  };
  for (;;) {
    if (missing() == 0) return;
    const auto now = Clock::now();
    if (owned_since_ && now - *owned_since_ > patience) fail(Code::already_exists, owner_);
    if (is_stopping_) fail(Code::cancelled, self.task, " stops while it waits for other tasks");
    if (now >= end) break;
    changed_.wait_until(lock, std::min(end, now + milliseconds(200)));
  }
  const size_t count = missing();
  lock.unlock();
  fail(Code::unavailable, self.task, " could not connect to ", count,
       count == 1 ? " task" : " tasks", " within ", seconds_text(limit), ":\n",
       table(/*only_missing=*/true));
}

// ---- The handle ----

Membership::Membership(TaskIdentity self, MembershipOptions options)
    : state_(std::make_shared<State>(std::move(self), std::move(options))) {}
Membership::~Membership() { state_->stop(); }

const TaskIdentity& Membership::self() const { return state_->self; }

void Membership::attach(RpcServer& server) {
  const std::weak_ptr<State> weak = state_;
  server.accept(Membership::State::connect_method, [weak](std::shared_ptr<RpcStream> stream) {
    if (auto state = weak.lock()) state->accept(std::move(stream));
  });
  server.handle(identify_method, [weak](RpcCall call) {
    const auto state = weak.lock();
    if (!state) return;
    try {
      call.reply(encode(answer_to_identify(call.request().to_string(), state->self)));
    } catch (...) {
      const Status status = status_of_current_exception();
      call.fail({static_cast<int>(status.code), status.message, RpcCause::none});
    }
  });
}

void Membership::start(const ClusterSpec& spec, std::shared_ptr<MembershipListener> listener) {
  state_->start(spec, std::move(listener));
}
void Membership::on_lost(std::function<void(const TaskName&, const Status&)> callback) {
  state_->on_lost = std::move(callback);
}
void Membership::on_change(std::function<void(const PeerStatus&)> callback) {
  state_->on_change = std::move(callback);
}
void Membership::serve_calls(CallHandlers handlers) { state_->calls = std::move(handlers); }
std::shared_ptr<Channel> Membership::channel(const TaskName& task) const {
  return state_->channel(task);
}
void Membership::wait_until_connected(milliseconds limit, std::span<const TaskName> tasks) const {
  state_->wait(limit, tasks);
}
std::vector<PeerStatus> Membership::peers() const { return state_->peers(); }
PeerStatus Membership::peer(const TaskName& task) const { return state_->peer(task); }
bool Membership::is_connected(const TaskName& task) const {
  return state_->status_of(task).is_ok();
}
bool Membership::is_lost(const TaskName& task) const {
  const PeerStatus status = state_->peer(task);
  return status.incarnation != 0 && status.state != PeerState::connected;
}
std::string Membership::last_heard(const TaskName& task) const { return state_->last_heard(task); }
Status Membership::status_of(const TaskName& task) const { return state_->status_of(task); }
std::string Membership::table(bool only_missing) const { return state_->table(only_missing); }

}  // namespace leat
