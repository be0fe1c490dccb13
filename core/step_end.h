// How work learns that nobody wants it any more: the step that it is for has ended, by a deadline,
// because its client has gone, or by an error of another node.
#pragma once

#include <atomic>
#include <cstdint>

namespace leat {

// Whoever runs work for a step opens a Scope on the thread; loops that may take long ask in it now
// and then, so that none goes on for more than about 0.1 s. Where no scope is open, work is wanted.
// ThreadPool::parallel_for asks between pieces of its range, and takes the scope along to the
// threads that help.
class StepEnd {
 public:
  // Set by whoever ends the step. It only says so: what else is to be known of the end has locks of
  // its own, so relaxed accesses suffice.
  using Flag = std::atomic<bool>;

  // Null: what the thread does is done to its end, whatever becomes of the step. For changes of
  // state that must not stay half done.
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
  // CANCELLED, and derived, if it has come.
  static void ask() {
    if (has_come()) stop();
  }

  // For loops whose iterations are too short to ask in each: say how many elements one handles.
  static void pace(int64_t elements = 1) {
    left_ -= elements;
    if (left_ > 0) return;
    left_ = elements_per_question;
    ask();
  }
  // A comparison for a sort, which asks now and then.
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
  // Never made on demand, as they are read in every loop.
  [[gnu::tls_model("initial-exec")]] static thread_local constinit const Flag* flag_;
  [[gnu::tls_model("initial-exec")]] static thread_local constinit int64_t left_;
};

}  // namespace leat
