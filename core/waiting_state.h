// State whose operations wait until they can be done: staging areas, barriers, accumulators.
// Nobody's thread waits with them.
#pragma once

#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>

#include "core/resource.h"

namespace leat {

// Operations are tried in the order in which they came, again after each change. Thread-safe.
class WaitingState : public Resource, public std::enable_shared_from_this<WaitingState> {
 public:
  // Whether one that must wait holds up those behind it.
  enum class Order { any, of_arrival };

  explicit WaitingState(std::string name, Order order = Order::any)
      : Resource(std::move(name)), order_(order) {}
  using Done = std::function<void(const Status&)>;

  // Whatever node finds it by its name; its operations are checked one by one.
  void check_fits(const NodeView&) const override {}

 protected:
  // With the lock held: does the operation and returns true, or changes nothing and returns false.
  // What it throws ends the operation.
  using Attempt = std::function<bool()>;

  // `done` is called once, without the lock: with what the attempt threw, or OK; or, should the
  // step of `cancellation` end before, with its status.
  void when_possible(Attempt attempt, Cancellation& cancellation, Done done);
  // Does `change` with the lock held, then what is possible now.
  void change(const std::function<void()>& change);
  size_t waiting() const { return line_.size(); }  // with the lock held

  mutable std::mutex mutex_;  // guards also what derived classes have

 private:
  struct Operation {
    int64_t id;
    Attempt attempt;
    Done done;
    std::function<void()> forget;  // its cancellation
  };

  void leave(int64_t id, const Status& why);
  void serve();

  const Order order_;
  std::deque<Operation> line_;
  std::map<int64_t, Status> joining_;  // not yet in line; not OK: their steps have ended
  int64_t next_id_ = 0;
};

}  // namespace leat
