#include "distributed/worker/rendezvous_router.h"

#include <algorithm>
#include <deque>
#include <map>
#include <mutex>
#include <set>
#include <unordered_map>
#include <utility>

#include "distributed/loss_text.h"
#include "distributed/recent_table.h"
#include "distributed/worker/step_rendezvous.h"

namespace leat {
namespace {

using Clock = std::chrono::steady_clock;
using Edges = std::shared_ptr<const std::vector<CutEdge>>;

constexpr auto remembered_for = std::chrono::seconds(60);
// Ended steps, so that late messages are recognised.
constexpr size_t remembered_steps = 1 << 14;

}  // namespace

class RendezvousRouter::State {
 public:
  State(TaskName self, RouterOptions options)
      : self_(std::move(self)), options_(std::move(options)) {}

  void know(const std::vector<TaskName>& tasks) {
    std::lock_guard lock(mutex_);
    known_ = {tasks.begin(), tasks.end()};
  }
  std::shared_ptr<Rendezvous> open(int64_t step, const Edges& edges);
  void close(int64_t step);
  void meet(const Edges& edges, std::function<void()> ready);
  size_t parked_bytes() const;
  size_t open_steps() const {
    std::lock_guard lock(mutex_);
    return steps_.size();
  }
  uint64_t sent_bytes() const {
    std::lock_guard lock(mutex_);
    uint64_t bytes = sent_on_lost_;
    for (const auto& channel : channels()) bytes += channel->sent_bytes();
    return bytes;
  }

  void connected(const TaskName& task, uint64_t incarnation, std::shared_ptr<Channel> channel);
  void lost(const TaskName& task, const Status& status, Clock::time_point heard);
  void received(const TaskName& task, int64_t step, int64_t edge, Tensor value, bool is_dead);
  void early(const TaskName& task, int64_t step);
  void aborted(const TaskName& task, int64_t step, const Status& status);
  StepPhase phase_of(int64_t step) const {
    std::lock_guard lock(mutex_);
    if (steps_.contains(step)) return StepPhase::running;
    return is_over(step) ? StepPhase::over : StepPhase::early;
  }
  Tensor room_for(const TaskName& task, int64_t step, int64_t edge, DType dtype,
                  const Shape& shape) const {
    const auto rendezvous = running(step);
    if (rendezvous == nullptr) return {};
    return rendezvous->room_for(rendezvous->routes()->peer_index(task), edge, dtype, shape);
  }
  std::string describe(int64_t step, int64_t edge) const;
  void tick();

 private:
  struct Peer {
    std::shared_ptr<Channel> channel;
    Status status;  // why there is none
    uint64_t incarnation = 0;
    Clock::time_point lost_at, heard;

    Status why_none() const {
      Status out = status;
      if (heard != Clock::time_point()) out.message += ", " + heard_text(heard);
      return out;
    }
  };
  // A step that is over. An error without peers: aborted from elsewhere before it began here.
  // Remembered far longer than its graph lives: it holds nothing of it.
  struct Over {
    std::shared_ptr<const Status> error;           // null: none
    const std::vector<TaskName>* peers = nullptr;  // of peer_groups_
    Clock::time_point since;
    Status status() const { return error != nullptr ? *error : Status(); }
  };
  struct Value {
    TaskName from;
    int64_t edge = 0;
    Tensor tensor;
    bool is_dead = false;
  };
  // Of a step that has not begun here. Without values while none has come whole.
  struct Parked {
    Clock::time_point since = Clock::now();
    TaskName from;  // whose bytes came first
    std::vector<Value> values;
  };
  struct Meeting {
    std::vector<TaskName> tasks;
    Clock::time_point until;
    std::function<void()> ready;
  };

  // Null if it does not run here.
  std::shared_ptr<StepRendezvous> running(int64_t step) const {
    std::lock_guard lock(mutex_);
    const auto found = steps_.find(step);
    return found != steps_.end() ? found->second : nullptr;
  }
  void tell_who_came(int64_t step, const std::vector<TaskName>& absent, const Status& status);
  void end_meetings();
  Status why_never(const TaskName& task) const;
  std::shared_ptr<const Routes> routes_of(const Edges& edges);
  bool is_over(int64_t step) const { return over_.contains(static_cast<uint64_t>(step)); }
  // With the lock held.
  void remember(int64_t step, const Status& status, const std::vector<TaskName>* peers);
  void forget_old_errors();
  Parked& park(const TaskName& from, int64_t step) {
    const auto [parked, is_new] = parked_.try_emplace(step);
    if (is_new) parked->second.from = from;
    return parked->second;
  }
  std::vector<std::shared_ptr<Channel>> channels() const {
    std::vector<std::shared_ptr<Channel>> out;
    for (const auto& [task, peer] : peers_) {
      if (peer.channel) out.push_back(peer.channel);
    }
    return out;
  }

  const TaskName self_;
  const RouterOptions options_;
  mutable std::mutex mutex_;
  std::map<TaskName, Peer> peers_;
  uint64_t sent_on_lost_ = 0;  // bytes, on channels that are gone
  std::set<TaskName> known_;   // of our description; empty: nobody has said
  std::vector<Meeting> meetings_;
  std::unordered_map<int64_t, std::shared_ptr<StepRendezvous>> steps_;
  std::unordered_map<int64_t, Parked> parked_;
  RecentTable<Over> over_{remembered_steps};
  std::deque<std::pair<Clock::time_point, uint64_t>> failed_;  // of over_: their errors have texts
  std::set<std::vector<TaskName>> peer_groups_;  // that steps have spanned: few, kept for good
  std::map<const void*,
           std::pair<std::weak_ptr<const std::vector<CutEdge>>, std::shared_ptr<const Routes>>>
      routes_;
};

std::shared_ptr<const Routes> RendezvousRouter::State::routes_of(const Edges& edges) {
  {
    std::lock_guard lock(mutex_);
    auto found = routes_.find(edges.get());
    if (found != routes_.end() && found->second.first.lock() == edges) return found->second.second;
  }
  auto routes = std::make_shared<Routes>(*edges, self_);
  std::lock_guard lock(mutex_);
  routes->lasting_peers = &*peer_groups_.insert(routes->peers).first;
  std::erase_if(routes_, [](const auto& entry) { return entry.second.first.expired(); });
  routes_[edges.get()] = {edges, routes};
  return routes;
}

// Waiting does not help if nobody of the two will ever dial the other.
Status RendezvousRouter::State::why_never(const TaskName& task) const {
  if (known_.empty() || known_.contains(task))
    return {Code::unavailable, concat(task, " has not been connected to ", self_)};
  return {Code::failed_precondition,
          concat("the cluster's description of ", self_, " has no ", task, ", and ", task,
                 " has not connected to it: one of the two must have the other in its description "
                 "(its cluster.json, or TF_CONFIG)")};
}

std::shared_ptr<Rendezvous> RendezvousRouter::State::open(int64_t step, const Edges& edges) {
  auto routes = routes_of(edges);
  auto rendezvous = std::make_shared<StepRendezvous>(step, edges, routes, self_, options_.executor);
  Parked parked;
  Status status;
  std::vector<std::shared_ptr<Channel>> to_settle;
  std::vector<TaskName> absent;
  {
    std::lock_guard lock(mutex_);
    if (steps_.contains(step))
      fail(Code::already_exists, "step ", step, " already runs on ", self_);
    if (const Over* over = over_.find(static_cast<uint64_t>(step)); over != nullptr) {
      if (over->peers != nullptr)
        fail(Code::already_exists, "step ", step, " has already run on ", self_);
      status = over->status();
    }
    for (size_t i = 0; i < routes->peers.size(); ++i) {
      const auto found = peers_.find(routes->peers[i]);
      if (found != peers_.end() && found->second.channel) {
        rendezvous->set_channel(i, found->second.channel);
        to_settle.push_back(found->second.channel);
      } else {
        absent.push_back(routes->peers[i]);
        if (status.is_ok())
          status = found != peers_.end() ? found->second.why_none() : why_never(routes->peers[i]);
      }
    }
    if (auto found = parked_.find(step); found != parked_.end()) {
      parked = std::move(found->second);
      parked_.erase(found);
    }
    steps_.emplace(step, rendezvous);
  }
  for (auto& channel : to_settle) channel->settle(step);
  for (Value& value : parked.values) {
    rendezvous->receive(routes->peer_index(value.from), value.edge, std::move(value.tensor),
                        value.is_dead);
  }
  if (!status.is_ok()) {
    rendezvous->abort(status);
    tell_who_came(step, absent, status);
  }
  return rendezvous;
}

// A peer that was absent when the step began may have connected since. connected() told it nothing,
// because the step had not failed yet.
void RendezvousRouter::State::tell_who_came(int64_t step, const std::vector<TaskName>& absent,
                                            const Status& status) {
  std::vector<std::shared_ptr<Channel>> to_tell;
  {
    std::lock_guard lock(mutex_);
    for (const TaskName& peer : absent) {
      const auto found = peers_.find(peer);
      if (found != peers_.end() && found->second.channel) to_tell.push_back(found->second.channel);
    }
  }
  for (const auto& channel : to_tell) channel->abort(step, status);
}

void RendezvousRouter::State::close(int64_t step) {
  std::shared_ptr<StepRendezvous> kept;  // its values go outside the lock
  std::lock_guard lock(mutex_);
  auto found = steps_.find(step);
  if (found == steps_.end()) return;
  kept = std::move(found->second);
  steps_.erase(found);
  // If it was aborted from elsewhere before it began, the entry is there, and stays.
  remember(step, kept->status(), kept->routes()->lasting_peers);
}

void RendezvousRouter::State::remember(int64_t step, const Status& status,
                                       const std::vector<TaskName>* peers) {
  const auto id = static_cast<uint64_t>(step);
  Over over{nullptr, peers, Clock::now()};
  const Clock::time_point since = over.since;
  if (!status.is_ok()) over.error = std::make_shared<const Status>(status);
  if (over_.insert(id, std::move(over)) && !status.is_ok()) failed_.emplace_back(since, id);
}

// Errors come in a recovery, among what it makes and drops: kept for long, each would keep a page.
void RendezvousRouter::State::forget_old_errors() {
  static const auto old = std::make_shared<const Status>(
      Status{Code::aborted, "the step was aborted, more than a minute ago"});
  const auto limit = Clock::now() - remembered_for;
  for (; !failed_.empty() && failed_.front().first < limit; failed_.pop_front()) {
    if (Over* over = over_.find(failed_.front().second); over != nullptr) over->error = old;
  }
}

// After a break, neither side knows what the other has seen of a step that spanned it: one may have
// ended it, with its last values lost on the way, while the other has begun it since and waits. So
// each says which of them are over. A step that is over there too ignores it. A process that was
// started since then has those only that began after the loss.
void RendezvousRouter::State::connected(const TaskName& task, uint64_t incarnation,
                                        std::shared_ptr<Channel> channel) {
  std::vector<std::pair<int64_t, Status>> over;
  {
    std::unique_lock lock(mutex_);
    const auto [found, is_first] = peers_.try_emplace(task);
    const Peer before = std::exchange(found->second, {channel, {}, incarnation, {}, {}});
    if (is_first) {
      lock.unlock();
      return end_meetings();
    }
    const auto limit =
        before.incarnation == incarnation ? Clock::now() - remembered_for : before.lost_at;
    over_.for_each([&](uint64_t step, const Over& what) {
      if (what.since <= limit || what.peers == nullptr) return;
      if (std::find(what.peers->begin(), what.peers->end(), task) == what.peers->end()) return;
      over.emplace_back(static_cast<int64_t>(step), what.status());
    });
    for (const auto& [step, rendezvous] : steps_) {
      if (rendezvous->routes()->peer_index(task) < 0) continue;
      if (Status status = rendezvous->status(); !status.is_ok())
        over.emplace_back(step, std::move(status));
    }
  }
  for (auto& [step, status] : over) {
    if (status.is_ok()) {
      status = {Code::unavailable,
                concat("the connection between ", self_, " and ", task, " broke during step ", step,
                       ": what it sent may be lost")};
    }
    channel->abort(step, status);
  }
}

void RendezvousRouter::State::meet(const Edges& edges, std::function<void()> ready) {
  const auto routes = routes_of(edges);
  {
    std::lock_guard lock(mutex_);
    meetings_.push_back({routes->peers, Clock::now() + options_.patience, std::move(ready)});
  }
  end_meetings();
}

// Those whose tasks have been connected (and may be lost again), or whose time is over.
void RendezvousRouter::State::end_meetings() {
  std::vector<Meeting> ended;
  {
    std::lock_guard lock(mutex_);
    const auto is_waiting = [&, now = Clock::now()](const Meeting& meeting) {
      return now < meeting.until &&
             !std::all_of(meeting.tasks.begin(), meeting.tasks.end(),
                          [&](const TaskName& task) { return peers_.contains(task); });
    };
    const auto first = std::partition(meetings_.begin(), meetings_.end(), is_waiting);
    ended.assign(std::make_move_iterator(first), std::make_move_iterator(meetings_.end()));
    meetings_.erase(first, meetings_.end());
  }
  for (const Meeting& meeting : ended) meeting.ready();
}

size_t RendezvousRouter::State::parked_bytes() const {
  std::lock_guard lock(mutex_);
  size_t bytes = 0;
  for (const auto& [step, parked] : parked_) {
    for (const Value& value : parked.values) bytes += value.tensor.bytes();
  }
  return bytes;
}

void RendezvousRouter::State::lost(const TaskName& task, const Status& status,
                                   Clock::time_point heard) {
  Status told;
  std::vector<std::pair<std::shared_ptr<StepRendezvous>, int>> concerned;
  {
    std::lock_guard lock(mutex_);
    Peer& peer = peers_[task];
    if (peer.channel) sent_on_lost_ += peer.channel->sent_bytes();
    peer = {nullptr, status, peer.incarnation, Clock::now(), heard};
    told = peer.why_none();
    for (const auto& [id, step] : steps_) {
      if (const int index = step->routes()->peer_index(task); index >= 0)
        concerned.emplace_back(step, index);
    }
  }
  for (auto& [step, peer] : concerned) {
    Status with_debt = told;
    with_debt.message += step->owed_by(peer);
    step->abort(with_debt, peer, /*is_remote=*/true);
  }
}

std::string RendezvousRouter::State::describe(int64_t step, int64_t edge) const {
  const auto rendezvous = running(step);
  return rendezvous ? rendezvous->describe(edge) : concat("edge ", edge);
}

void RendezvousRouter::State::received(const TaskName& task, int64_t step, int64_t edge,
                                       Tensor value, bool is_dead) {
  std::shared_ptr<StepRendezvous> rendezvous;
  {
    std::lock_guard lock(mutex_);
    auto found = steps_.find(step);
    if (found != steps_.end()) {
      rendezvous = found->second;
    } else {
      if (is_over(step)) return;
      park(task, step).values.push_back({task, edge, std::move(value), is_dead});
      return;
    }
  }
  rendezvous->receive(rendezvous->routes()->peer_index(task), edge, std::move(value), is_dead);
}

// A value that is larger than the window never becomes whole before its step begins.
void RendezvousRouter::State::early(const TaskName& task, int64_t step) {
  std::lock_guard lock(mutex_);
  if (!steps_.contains(step) && !is_over(step)) park(task, step);
}

void RendezvousRouter::State::aborted(const TaskName& task, int64_t step, const Status& status) {
  Status derived = status;
  derived.derived = true;
  std::shared_ptr<StepRendezvous> rendezvous;
  std::vector<std::shared_ptr<Channel>> to_settle;
  std::vector<TaskName> absent;
  Parked dropped;
  {
    std::lock_guard lock(mutex_);
    if (auto found = steps_.find(step); found != steps_.end()) {
      rendezvous = found->second;
    } else {
      remember(step, derived, nullptr);
      if (auto parked = parked_.find(step); parked != parked_.end()) {
        dropped = std::move(parked->second);
        parked_.erase(parked);
      }
      to_settle = channels();
    }
  }
  for (auto& channel : to_settle) channel->settle(step);
  if (rendezvous)
    rendezvous->abort(derived, rendezvous->routes()->peer_index(task), /*is_remote=*/true);
}

// Drops what has waited too long for its step.
void RendezvousRouter::State::tick() {
  end_meetings();
  std::vector<std::pair<int64_t, Parked>> dropped;
  std::vector<std::shared_ptr<Channel>> to_settle;
  std::vector<TaskName> absent;
  {
    std::lock_guard lock(mutex_);
    forget_old_errors();
    const auto limit = Clock::now() - options_.parking;
    for (auto at = parked_.begin(); at != parked_.end();) {
      if (at->second.since > limit) {
        ++at;
        continue;
      }
      remember(at->first,
               {Code::deadline_exceeded,
                concat("step ", at->first, " began on ", self_,
                       " long after its first bytes came from ", at->second.from)},
               nullptr);
      dropped.emplace_back(at->first, std::move(at->second));
      at = parked_.erase(at);
    }
    if (!dropped.empty()) to_settle = channels();
  }
  for (auto& [step, parked] : dropped) {
    for (auto& channel : to_settle) channel->settle(step);
  }
}

RendezvousRouter::RendezvousRouter(const TaskName& self, RouterOptions options)
    : state_(std::make_unique<State>(self, std::move(options))) {}
RendezvousRouter::~RendezvousRouter() = default;
void RendezvousRouter::know(const std::vector<TaskName>& tasks) { state_->know(tasks); }

std::shared_ptr<Rendezvous> RendezvousRouter::open(int64_t step, const Edges& edges) {
  return state_->open(step, edges);
}
void RendezvousRouter::close(int64_t step) { state_->close(step); }
void RendezvousRouter::meet(const Edges& edges, std::function<void()> ready) {
  state_->meet(edges, std::move(ready));
}
size_t RendezvousRouter::parked_bytes() const { return state_->parked_bytes(); }
size_t RendezvousRouter::open_steps() const { return state_->open_steps(); }
uint64_t RendezvousRouter::sent_bytes() const { return state_->sent_bytes(); }
void RendezvousRouter::connected(const TaskName& peer, uint64_t incarnation,
                                 std::shared_ptr<Channel> channel) {
  state_->connected(peer, incarnation, std::move(channel));
}
void RendezvousRouter::lost(const TaskName& peer, const Status& status,
                            std::chrono::steady_clock::time_point heard) {
  state_->lost(peer, status, heard);
}
void RendezvousRouter::received(const TaskName& peer, int64_t step, int64_t edge, Tensor value,
                                bool is_dead) {
  state_->received(peer, step, edge, std::move(value), is_dead);
}
void RendezvousRouter::early(const TaskName& peer, int64_t step) { state_->early(peer, step); }
void RendezvousRouter::aborted(const TaskName& peer, int64_t step, const Status& status) {
  state_->aborted(peer, step, status);
}
std::string RendezvousRouter::describe(int64_t step, int64_t edge) {
  return state_->describe(step, edge);
}
Tensor RendezvousRouter::room_for(const TaskName& peer, int64_t step, int64_t edge, DType dtype,
                                  const Shape& shape) {
  return state_->room_for(peer, step, edge, dtype, shape);
}
StepPhase RendezvousRouter::phase_of(int64_t step) { return state_->phase_of(step); }
void RendezvousRouter::tick() { state_->tick(); }

}  // namespace leat
