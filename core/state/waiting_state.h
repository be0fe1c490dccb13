// State whose operations wait until they can run: staging areas, barriers, accumulators. They block
// no thread.
#pragma once

#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>

#include "core/state/resource.h"

namespace leat {

// Tries operations in order of arrival, and again after each change. Thread-safe.
class WaitingState : public Resource, public std::enable_shared_from_this<WaitingState> {
 public:
  // Whether an operation that must wait holds up those behind it.
  enum class Order { any, of_arrival };

  explicit WaitingState(std::string name, Order order = Order::any)
      : Resource(std::move(name)), order_(order) {}
  using Done = std::function<void(const Status&)>;

  // Any node may find it by name; its operations are checked one by one.
  void check_fits(const NodeView&) const override {}

 protected:
  // Called with the lock held: does the operation and returns true, or changes nothing and returns
  // false. An exception ends the operation.
  using Attempt = std::function<bool()>;

  // Calls `done` once, without the lock: with OK or the attempt's exception; or, if the step of
  // `cancellation` ends first, with its status.
  void when_possible(Attempt attempt, Cancellation& cancellation, Done done);
  // Runs `change` with the lock held, then all operations that are possible now.
  void change(const std::function<void()>& change);
  size_t waiting() const { return line_.size(); }  // with the lock held

  mutable std::mutex mutex_;  // also guards the members of derived classes

 private:
  struct Operation {
    int64_t id;
    Attempt attempt;
    Done done;
    std::function<void()> forget;  // unregisters from its cancellation
  };

  void leave(int64_t id, const Status& why);
  void serve();

  const Order order_;
  std::deque<Operation> line_;
  std::map<int64_t, Status> joining_;  // not yet in line; an error: their steps have ended
  int64_t next_id_ = 0;
};

}  // namespace leat
