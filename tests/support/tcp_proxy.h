// A TCP relay that misbehaves on command: a network between two real ends, for tests of how they
// handle a lost, slow or corrupt one.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <thread>

namespace leat {

// Listens on a port of 127.0.0.1 and relays to `target` ("host:port"), both ways. Thread-safe.
class TcpProxy {
 public:
  explicit TcpProxy(const std::string& target);
  ~TcpProxy();
  TcpProxy(const TcpProxy&) = delete;

  std::string address() const;  // "127.0.0.1:port"

  // Delays bytes by this time, in order.
  void delay(std::chrono::milliseconds time) { delay_ms_ = time.count(); }
  // Limits the bytes per second, each way of each connection; 0: unlimited.
  void limit(int64_t bytes_per_second) { limit_ = bytes_per_second; }
  // Nothing passes, and neither end notices: a pulled cable, a half-open connection. Pending bytes
  // continue when it is over.
  void stall(bool is_stalled = true) {
    stall_requests(is_stalled);
    stall_replies(is_stalled);
  }
  void stall_requests(bool is_stalled = true) { stalled_[0] = is_stalled; }  // to the target
  void stall_replies(bool is_stalled = true) { stalled_[1] = is_stalled; }   // from it
  // Refuses new connections (closes them at once).
  void refuse(bool is_refusing = true) { is_refusing_ = is_refusing; }
  // Resets all current connections, and returns when done; their pending bytes are lost.
  void reset();
  // Flips one bit in each of the next `count` pieces that pass.
  void corrupt(int count) { to_corrupt_ = count; }
  // The same for large pieces from the target: the payload of a large tensor.
  void corrupt_large_replies(int count) { large_to_corrupt_ = count; }

  int64_t bytes(bool is_reply) const { return passed_[is_reply ? 1 : 0]; }  // relayed so far
  int connections() const { return connections_; }                          // currently open

 private:
  class Relay;
  void run();

  const std::string target_;
  int listener_ = -1;
  int port_ = 0;
  std::atomic<int64_t> delay_ms_{0}, limit_{0};
  std::atomic<bool> stalled_[2] = {false, false};
  std::atomic<bool> is_refusing_{false};
  std::atomic<bool> is_stopping_{false};
  std::atomic<int> resets_{0}, resets_done_{0};
  std::atomic<int> to_corrupt_{0}, large_to_corrupt_{0}, connections_{0};
  std::atomic<int64_t> passed_[2] = {0, 0};
  std::thread thread_;
};

}  // namespace leat
