// For whom work is scheduled: a pool serves its sources in turn.
#pragma once

#include <cstdint>
#include <string_view>

namespace leat {

// Work that a thread schedules while a Scope is open belongs to that source: a client's session. A
// pool runs work in the scope in which it was scheduled. For the effect see ThreadPool's queue.
class WorkSource {
 public:
  using Id = uint64_t;
  static constexpr Id none = 0;  // a pool of one user
  // Short work for clients of a task that it cannot tell apart yet, such as reading a request. Each
  // piece counts as its own source.
  static constexpr Id requests = 1;
  static Id of(std::string_view session);

  class Scope {
   public:
    explicit Scope(Id id) : outer_(id_) { id_ = id; }
    ~Scope() { id_ = outer_; }
    Scope(const Scope&) = delete;

   private:
    const Id outer_;
  };

  static Id of_thread() { return id_; }

 private:
  [[gnu::tls_model("initial-exec")]] static thread_local constinit Id id_;
};

}  // namespace leat
