#include "core/state/waiting_state.h"

#include <algorithm>
#include <utility>
#include <vector>

namespace leat {

// The operation knows its step's end before any thread can serve it: `done` may end the step, and
// the cancellation with it.
void WaitingState::when_possible(Attempt attempt, Cancellation& cancellation, Done done) {
  int64_t id = 0;
  {
    const std::lock_guard lock(mutex_);
    id = next_id_++;
    joining_.emplace(id, Status{});
  }
  const Cancellation::Token token = cancellation.add(
      [state = shared_from_this(), id](const Status& why) { state->leave(id, why); });
  Status ended;
  {
    const std::lock_guard lock(mutex_);
    ended = std::move(joining_.extract(id).mapped());
    if (ended.is_ok()) {
      line_.push_back({id, std::move(attempt), std::move(done),
                       [&cancellation, token] { cancellation.remove(token); }});
    }
  }
  if (!ended.is_ok()) return done(ended);
  serve();
}

void WaitingState::change(const std::function<void()>& change) {
  {
    const std::lock_guard lock(mutex_);
    change();
  }
  serve();
}

// Its step has ended.
void WaitingState::leave(int64_t id, const Status& why) {
  Operation leaving;
  {
    const std::lock_guard lock(mutex_);
    if (const auto found = joining_.find(id); found != joining_.end()) {
      found->second = why;
      return;
    }
    const auto found =
        std::find_if(line_.begin(), line_.end(), [&](const Operation& o) { return o.id == id; });
    if (found == line_.end()) return;
    leaving = std::move(*found);
    line_.erase(found);
  }
  leaving.done(why);
  if (order_ == Order::of_arrival) serve();  // who stood behind it
}

void WaitingState::serve() {
  std::vector<std::pair<Operation, Status>> served;
  {
    const std::lock_guard lock(mutex_);
    for (auto operation = line_.begin(); operation != line_.end();) {
      Status status;
      bool is_done = true;
      try {
        is_done = operation->attempt();
      } catch (...) {
        status = status_of_current_exception();
      }
      if (!is_done && order_ == Order::of_arrival) break;
      if (!is_done) {
        ++operation;
        continue;
      }
      served.emplace_back(std::move(*operation), std::move(status));
      line_.erase(operation);
      operation = line_.begin();  // what it did may let those before it go on
    }
  }
  for (auto& [operation, status] : served) {
    operation.forget();
    operation.done(status);
  }
}

}  // namespace leat
