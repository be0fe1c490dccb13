// How running work learns that its step has ended: by a deadline, because its client left, or by
// another node's error.
#pragma once

#include <atomic>
#include <cstdint>

namespace leat {

// Code that runs work for a step opens a Scope on its thread. Long loops inside call ask() now and
// then, so that none goes on for more than about 0.1 s. Without an open scope, work always
// continues. ThreadPool::parallel_for asks between pieces of its range, and passes the scope on to
// the threads that help.
class StepEnd {
 public:
  // Set by the code that ends the step. It carries no other data (the rest of the end has its own
  // locks), so relaxed accesses suffice.
  using Flag = std::atomic<bool>;

  // Null: the thread finishes its work even if the step ends. For changes of state that must not
  // stay half done.
  class Scope {
   public:
    explicit Scope(const Flag* flag) : outer_(flag_) { flag_ = flag; }
    ~Scope() { flag_ = outer_; }
    Scope(const Scope&) = delete;

   private:
    const Flag* const outer_;
  };

  static const Flag* of_thread() { return flag_; }
  static bool has_come() { return flag_ != nullptr && flag_->load(std::memory_order_relaxed); }
  // Throws CANCELLED, derived, if the step has ended.
  static void ask() {
    if (has_come()) stop();
  }

  // For loops too short to ask in each iteration: pass the number of elements per iteration.
  static void pace(int64_t elements = 1) {
    left_ -= elements;
    if (left_ > 0) return;
    left_ = elements_per_question;
    ask();
  }
  // A comparison for a sort that asks now and then.
  template <class Less>
  static auto pacing(Less less) {
    return [less](const auto& a, const auto& b) {
      pace(4);
      return less(a, b);
    };
  }

 private:
  [[noreturn]] static void stop();
  static constexpr int64_t elements_per_question = 1 << 18;
  // Never created on demand, because every loop reads them.
  [[gnu::tls_model("initial-exec")]] static thread_local constinit const Flag* flag_;
  [[gnu::tls_model("initial-exec")]] static thread_local constinit int64_t left_;
};

}  // namespace leat
