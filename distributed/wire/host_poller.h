// The threads that serve a process's links to others of its host: one, or more where there are many
// cores, since quick steps run on them. A thread sleeps until one of its links has a signal. Where
// there are three cores or more for each task of the host, it first looks for the next message for
// 20 µs: a message that comes then costs no signal and no wake-up. With fewer it does not: with two
// tasks on two cores, this made the steps of an MLP 14 % longer and empty steps no shorter.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <vector>

namespace leat {

// Something that is served at its signals, always on the same thread of the poller.
class Polled {
 public:
  virtual ~Polled() = default;
  // An eventfd: each write to it is a signal. It is not read, as a peer that holds it, too, could
  // make a read wait.
  virtual int descriptor() const = 0;
  enum class Served : uint8_t { nothing, something, more };  // more: and there is more to do
  // Does a bounded part of the work.
  virtual Served serve() = 0;
  // Asks for a signal. False if there is something already.
  virtual bool sleep() = 0;
};

// Thread-safe.
class HostPoller {
 public:
  static constexpr std::chrono::microseconds by_cores{-1};
  // `threads`: at most; 0: one for every four cores, at most four. One is there at once, another
  // when there are links for it. `looks`: how long one looks for the next message before it sleeps;
  // by_cores: see above. UNAVAILABLE if the system gives it no descriptor or thread.
  explicit HostPoller(size_t threads = 0, std::chrono::microseconds looks = by_cores);
  // Waits for a running serve(), unless it is called by it.
  ~HostPoller();
  HostPoller(const HostPoller&) = delete;

  // Keeps it, and serves it at its signals, until remove(). RESOURCE_EXHAUSTED if it cannot.
  void add(std::shared_ptr<Polled> polled);
  // No serve() begins afterwards; one may be running.
  void remove(const Polled& polled);

 private:
  class Server;
  void choose_looks(size_t links);
  size_t most_;
  const std::chrono::microseconds looks_;
  std::mutex mutex_;
  std::vector<std::unique_ptr<Server>> servers_;
};

}  // namespace leat
