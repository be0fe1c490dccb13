// The listening sockets of a server. gRPC (1.51) could listen itself, but once the process has run
// out of file descriptors it never accepts again, and it only logs why it cannot bind.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

namespace leat::transport {

class Listener {
 public:
  // Listens on all addresses of "host:port", at one exclusive port (0: any free one).
  // std::runtime_error with the reason if none of them can be used.
  explicit Listener(const std::string& address);
  ~Listener();  // stops; the port is free
  Listener(const Listener&) = delete;

  int port() const { return port_; }

  // Takes over the connection; called on the listener's thread. While no descriptors are left,
  // connections are reset instead, so that clients learn at once that they are refused.
  using Accepted = std::function<void(int listener, int connection)>;
  void start(Accepted accepted);

 private:
  bool accept_one(int listener);
  void run();

  std::vector<int> sockets_;
  int port_ = 0;
  int stop_ = -1;     // an eventfd: readable when the thread must end
  int reserve_ = -1;  // a descriptor to give up when there are no others
  Accepted accepted_;
  std::thread thread_;
};

}  // namespace leat::transport
