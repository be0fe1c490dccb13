// A stream that misbehaves on command, for tests of what lies above it.
#pragma once

#include <atomic>
#include <chrono>
#include <memory>
#include <mutex>
#include <vector>

#include "distributed/grpc/rpc.h"
#include "distributed/timer.h"

namespace leat {

// The commands; shared by all streams that it wraps. Thread-safe. Must outlive their events.
class Faults {
 public:
  std::shared_ptr<RpcStream> wrap(std::shared_ptr<RpcStream> stream);

  void delay(std::chrono::milliseconds time) {
    delay_ms_ = time.count();
  }                                                  // every message, both ways, order kept
  void drop_writes(int count) { to_drop_ = count; }  // the next ones vanish
  // The next ones with a large slice arrive with one bit of it changed.
  void damage_writes(int count) { to_damage_ = count; }
  void freeze(bool is_frozen = true) {
    is_frozen_ = is_frozen;
  }            // both ways: messages vanish, no end is seen
  void cut();  // ends all streams, as a broken connection

 private:
  friend class FaultyStream;
  std::atomic<int64_t> delay_ms_{0};
  std::atomic<int> to_drop_{0};
  std::atomic<int> to_damage_{0};
  std::atomic<bool> is_frozen_{false};
  std::mutex mutex_;
  std::vector<std::weak_ptr<RpcStream>> streams_;
  Timer timer_;
};

}  // namespace leat
