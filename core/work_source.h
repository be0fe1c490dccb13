// For whom work is scheduled: a pool serves those who want something in turn.
#pragma once

#include <cstdint>
#include <string_view>

namespace leat {

// What a thread schedules while a Scope is open is for that source: a client's session. What a pool
// runs, it runs in the scope in which it was scheduled. See ThreadPool's queue for what follows.
class WorkSource {
 public:
  using Id = uint64_t;
  static constexpr Id none = 0;  // a pool of one user
  // Short work for a task's clients that cannot be told apart yet, such as the reading of a
  // request: each piece is a source by itself.
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
