#include "distributed/timer.h"

#include <condition_variable>
#include <map>
#include <mutex>
#include <thread>
#include <unordered_map>
#include <utility>

namespace leat {

class Timer::State {
 public:
  State() : thread_([this] { loop(); }) {}

  ~State() { stop(); }

  void stop() {
    decltype(actions_) dropped;  // go after the lock
    {
      std::lock_guard lock(mutex_);
      is_ending_ = true;
      dropped.swap(actions_);
      times_.clear();
    }
    wake_.notify_all();
    if (thread_.joinable()) thread_.join();
  }

  Id add(Clock::time_point when, std::function<void()> action) {
    bool is_next = false;
    Id id = 0;
    {
      std::lock_guard lock(mutex_);
      id = ++last_;
      if (is_ending_) return id;
      is_next = actions_.empty() || when < actions_.begin()->first.first;
      actions_.emplace(std::pair{when, id}, std::move(action));
      times_.emplace(id, when);
    }
    if (is_next) wake_.notify_all();
    return id;
  }

  bool cancel(Id id) {
    std::function<void()> dropped;  // goes after the lock
    std::lock_guard lock(mutex_);
    const auto found = times_.find(id);
    if (found == times_.end()) return false;
    const auto action = actions_.find({found->second, id});
    dropped = std::move(action->second);
    actions_.erase(action);
    times_.erase(found);
    return true;
  }

 private:
  void loop() {
    std::unique_lock lock(mutex_);
    while (!is_ending_) {
      if (actions_.empty()) {
        wake_.wait(lock);
        continue;
      }
      const auto next = actions_.begin();
      if (next->first.first > Clock::now()) {
        const Clock::time_point when = next->first.first;  // the entry may go while we wait
        wake_.wait_until(lock, when);
        continue;
      }
      std::function<void()> action = std::move(next->second);
      times_.erase(next->first.second);
      actions_.erase(next);
      lock.unlock();
      action();
      action = nullptr;
      lock.lock();
    }
  }

  std::mutex mutex_;
  std::condition_variable wake_;
  std::map<std::pair<Clock::time_point, Id>, std::function<void()>> actions_;
  std::unordered_map<Id, Clock::time_point> times_;
  Id last_ = 0;
  bool is_ending_ = false;
  std::thread thread_;  // last: it uses all of the above
};

Timer::Timer() : state_(std::make_unique<State>()) {}
Timer::~Timer() = default;
Timer::Id Timer::at(Clock::time_point when, std::function<void()> action) {
  return state_->add(when, std::move(action));
}
bool Timer::cancel(Id id) { return state_->cancel(id); }
void Timer::stop() { state_->stop(); }

}  // namespace leat
