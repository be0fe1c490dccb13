// Requests that may come twice: a repeat (same id) gets the first one's answer, or joins it while
// it still runs. What makes a client's retry after a lost connection harmless.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <unordered_map>
#include <utility>
#include <vector>

#include "distributed/recent_table.h"

namespace leat {

struct RequestMemoryLimits {
  size_t requests = 10'000;  // whose ids are remembered: as many as TensorFlow does
  // Of these, whose answers are there still. Few: a client repeats what it has under way, no more;
  // and they are small and short-lived, but each keeps a page that a recovery has left free.
  size_t answers = 256;
  size_t bytes = 16 << 20;  // of these answers, together
  // Older answers go when another comes: requests of a kind that is seldom would keep theirs, each
  // somewhere between what is big and short-lived.
  std::chrono::steady_clock::duration age = std::chrono::minutes(1);
};

// Thread-safe.
template <class Answer>
class RequestMemory {
 public:
  // Null: the request was answered, but the answer is too old (or too large) to be there still.
  using Done = std::function<void(const std::shared_ptr<const Answer>&)>;

  explicit RequestMemory(RequestMemoryLimits limits)
      : limits_(limits), answered_(limits.requests) {}

  // True: the id is new, so do the work and then call answer(). False: `done` was called, or will
  // be with the answer.
  bool begin(uint64_t id, Done done) {
    std::shared_ptr<const Answer> answer;
    {
      std::lock_guard lock(mutex_);
      if (const auto found = kept_.find(id); found != kept_.end()) {
        answer = found->second.answer;
      } else if (!answered_.contains(id)) {
        const auto [running, is_new] = running_.try_emplace(id);
        running->second.push_back(std::move(done));
        return is_new;
      }
    }
    done(answer);
    return false;
  }

  // Answers all who asked with this id. `bytes` is what keeping it costs.
  void answer(uint64_t id, std::shared_ptr<const Answer> answer, size_t bytes) {
    std::vector<Done> waiting;
    {
      std::lock_guard lock(mutex_);
      if (auto running = running_.extract(id)) waiting = std::move(running.mapped());
      answered_.insert(id, {});
      if (bytes <= limits_.bytes) keep(id, answer, bytes);
    }
    for (const Done& done : waiting) done(answer);
  }

 private:
  using Clock = std::chrono::steady_clock;
  struct Kept {
    std::shared_ptr<const Answer> answer;
    size_t bytes = 0;
    Clock::time_point since;
  };
  struct Nothing {};

  void keep(uint64_t id, const std::shared_ptr<const Answer>& answer, size_t bytes) {
    const size_t most = std::min(limits_.answers, limits_.requests);
    const Clock::time_point now = Clock::now();
    while (!order_.empty()) {
      const auto oldest = kept_.find(order_.front());
      const bool has_room = bytes_ + bytes <= limits_.bytes && order_.size() < most;
      if (has_room && now - oldest->second.since <= limits_.age) break;
      bytes_ -= oldest->second.bytes;
      kept_.erase(oldest);
      order_.pop_front();
    }
    kept_[id] = {answer, bytes, now};
    order_.push_back(id);
    bytes_ += bytes;
  }

  const RequestMemoryLimits limits_;
  std::mutex mutex_;
  std::unordered_map<uint64_t, std::vector<Done>> running_;
  RecentTable<Nothing> answered_;
  std::unordered_map<uint64_t, Kept> kept_;
  std::deque<uint64_t> order_;  // of kept_, oldest first
  size_t bytes_ = 0;
};

}  // namespace leat
