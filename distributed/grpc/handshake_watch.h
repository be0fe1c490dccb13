// Reports connections that end before a call arrives over them: gRPC reports neither a failed
// handshake nor its peer. Internal to this folder.
#pragma once

#include <chrono>
#include <functional>
#include <map>
#include <mutex>
#include <string>
#include <thread>

namespace leat::transport {

class HandshakeWatch {
 public:
  // `failed` is called on a thread of this object with the peer's address, and the reason if known.
  using Failed = std::function<void(const std::string& peer, const std::string& why)>;
  explicit HandshakeWatch(Failed failed);
  ~HandshakeWatch();
  HandshakeWatch(const HandshakeWatch&) = delete;

  // A connection was accepted; its owner closes it. With thousands of silent connections, or
  // without free descriptors, the rest are not watched.
  void accepted(int connection);
  // A call has arrived over it.
  void passed(const std::string& peer);

 private:
  struct Watched {
    int fd = -1;  // our own descriptor of it
    std::chrono::steady_clock::time_point since;
  };
  void run();

  const Failed failed_;
  std::mutex mutex_;
  std::map<std::string, Watched> watched_;  // by the peer's address
  bool is_stopping_ = false;
  int wake_ = -1;
  std::thread thread_;
};

}  // namespace leat::transport
