// A stream that misbehaves on command, for tests of the layers above it.
#pragma once

#include <atomic>
#include <chrono>
#include <memory>
#include <mutex>
#include <vector>

#include "distributed/grpc/rpc.h"
#include "distributed/timer.h"

namespace leat {

// The commands, shared by all streams that it wraps. Thread-safe. Must outlive the streams' events.
class Faults {
 public:
  std::shared_ptr<RpcStream> wrap(std::shared_ptr<RpcStream> stream);

  void delay(std::chrono::milliseconds time) {
    delay_ms_ = time.count();
  }                                                  // every message, both ways, order kept
  void drop_writes(int count) { to_drop_ = count; }  // the next `count` vanish
  // The next `count` with a large slice arrive with one bit of it flipped.
  void damage_writes(int count) { to_damage_ = count; }
  void freeze(bool is_frozen = true) {
    is_frozen_ = is_frozen;
  }            // both ways: messages vanish, no end is reported
  void cut();  // ends all streams, like a broken connection

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
