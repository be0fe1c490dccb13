// A TCP relay that misbehaves on command: a network between two real ends, for tests of what a
// lost, slow or lying one does to them.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <thread>

namespace leat {

// Listens on a port of 127.0.0.1 and passes on to `target` ("host:port"), both ways. Thread-safe.
class TcpProxy {
 public:
  explicit TcpProxy(const std::string& target);
  ~TcpProxy();
  TcpProxy(const TcpProxy&) = delete;

  std::string address() const;  // "127.0.0.1:port"

  // Bytes arrive so much later, in order.
  void delay(std::chrono::milliseconds time) { delay_ms_ = time.count(); }
  // So many bytes pass in a second, each way of each connection; 0: as many as come.
  void limit(int64_t bytes_per_second) { limit_ = bytes_per_second; }
  // Nothing passes, and nobody is told: a pulled cable, a half-open connection. What waited goes
  // on when it is over.
  void stall(bool is_stalled = true) {
    stall_requests(is_stalled);
    stall_replies(is_stalled);
  }
  void stall_requests(bool is_stalled = true) { stalled_[0] = is_stalled; }  // to the target
  void stall_replies(bool is_stalled = true) { stalled_[1] = is_stalled; }   // from it
  // New connections are refused (closed at once).
  void refuse(bool is_refusing = true) { is_refusing_ = is_refusing; }
  // Resets all connections that there are; returns when that is done: what waited in them is lost.
  void reset();
  // Changes one bit of the next `count` pieces that pass.
  void corrupt(int count) { to_corrupt_ = count; }
  // The same of large pieces from the target: the payload of a large tensor.
  void corrupt_large_replies(int count) { large_to_corrupt_ = count; }

  int64_t bytes(bool is_reply) const { return passed_[is_reply ? 1 : 0]; }  // passed on so far
  int connections() const { return connections_; }                          // there are now

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
