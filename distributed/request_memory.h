// Requests that may arrive twice: a repeat (same id) gets the first one's answer, or joins it while
// it runs. This makes a client's retry after a lost connection harmless.
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
  size_t requests = 10'000;  // ids remembered: as many as TensorFlow's
  // Of these, the answers still kept. Few: a client repeats only requests under way. And each small
  // answer keeps a page alive that a recovery has left free.
  size_t answers = 256;
  size_t bytes = 16 << 20;  // of these answers, together
  // Older answers are dropped when another comes. Otherwise rare kinds of requests would keep
  // theirs, scattered between big short-lived blocks.
  std::chrono::steady_clock::duration age = std::chrono::minutes(1);
};

// Thread-safe.
template <class Answer>
class RequestMemory {
 public:
  // Null: the request was answered, but the answer is too old (or too large) to be kept.
  using Done = std::function<void(const std::shared_ptr<const Answer>&)>;

  explicit RequestMemory(RequestMemoryLimits limits)
      : limits_(limits), answered_(limits.requests) {}

  // True: the id is new; do the work, then call answer(). False: `done` was called, or will be
  // called with the answer.
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

  // Answers all callers that asked with this id. `bytes` is the cost of keeping it.
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
