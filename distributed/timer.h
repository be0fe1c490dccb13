// Deadlines: one thread that calls functions when they are due.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>

namespace leat {

// Thread-safe. Functions run one after the other on the timer's thread and must be quick.
class Timer {
 public:
  using Clock = std::chrono::steady_clock;
  using Id = uint64_t;  // never 0

  Timer();
  ~Timer();  // stop()
  Timer(const Timer&) = delete;

  Id at(Clock::time_point when, std::function<void()> action);
  Id after(Clock::duration delay, std::function<void()> action) {
    return at(Clock::now() + delay, std::move(action));
  }
  // False if it has run, is running, or was cancelled. Does not wait. Ignores 0.
  bool cancel(Id id);
  // Drops all pending and later functions; waits for a running one. Not from such a function.
  void stop();

 private:
  class State;
  std::unique_ptr<State> state_;
};

}  // namespace leat
