// Deadlines: one thread that calls functions at their time.
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
  // False if it has run, runs, or was cancelled. Does not wait. 0 is ignored.
  bool cancel(Id id);
  // Drops what is left, and all that comes later; waits for the function that runs. Not from one.
  void stop();

 private:
  class State;
  std::unique_ptr<State> state_;
};

}  // namespace leat
