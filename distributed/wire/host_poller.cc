#include "distributed/wire/host_poller.h"

#include <sys/epoll.h>
#include <sys/eventfd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdint>
#include <cstring>
#include <map>
#include <mutex>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

#include "core/error.h"
#include "core/fd.h"

namespace leat {
class HostPoller::State {
 public:
  State() : epoll_(epoll_create1(EPOLL_CLOEXEC)), wake_(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {
    epoll_event event{};
    event.events = EPOLLIN;
    event.data.ptr = nullptr;
    if (!epoll_ || !wake_ || epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, wake_.get(), &event) != 0)
      fail(Code::unavailable, "cannot wait for other tasks of this host: ", std::strerror(errno));
  }

  void add(std::shared_ptr<Polled> polled) {
    std::lock_guard lock(mutex_);
    epoll_event event{};
    event.events = EPOLLIN | EPOLLET;  // at each write
    event.data.ptr = polled.get();
    if (epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, polled->descriptor(), &event) != 0)
      fail(Code::resource_exhausted, "cannot wait for a task of this host: ", std::strerror(errno));
    polled_.emplace(polled.get(), std::move(polled));
  }

  void remove(const Polled& polled) {
    std::shared_ptr<Polled> last;  // may end it: outside the lock
    std::lock_guard lock(mutex_);
    const auto found = polled_.find(&polled);
    if (found == polled_.end()) return;
    epoll_ctl(epoll_.get(), EPOLL_CTL_DEL, polled.descriptor(), nullptr);
    last = std::move(found->second);
    polled_.erase(found);
  }

  void stop() {
    {
      std::lock_guard lock(mutex_);
      is_stopping_ = true;
    }
    const uint64_t one = 1;
    [[maybe_unused]] const ssize_t written = ::write(wake_.get(), &one, sizeof one);
  }

  void run() {
    std::vector<std::shared_ptr<Polled>> awake;  // those that have not asked for signals
    while (collect(awake)) {
      bool is_busy = false;
      for (const std::shared_ptr<Polled>& polled : awake) is_busy |= polled->serve();
      if (!is_busy) std::erase_if(awake, [](const auto& polled) { return polled->sleep(); });
    }
  }

 private:
  // Wakes those that have a signal, waits for one if all sleep, and drops those that were removed.
  // False at the end.
  bool collect(std::vector<std::shared_ptr<Polled>>& awake) {
    std::array<epoll_event, 32> events;
    const int count = epoll_wait(epoll_.get(), events.data(), static_cast<int>(events.size()),
                                 awake.empty() ? -1 : 0);
    std::lock_guard lock(mutex_);
    if (is_stopping_) return false;
    std::erase_if(awake, [&](const auto& polled) { return !polled_.contains(polled.get()); });
    for (int i = 0; i < count; ++i) {
      const auto found = polled_.find(static_cast<const Polled*>(events[i].data.ptr));
      if (found == polled_.end()) continue;
      if (std::find(awake.begin(), awake.end(), found->second) == awake.end())
        awake.push_back(found->second);
    }
    return true;
  }

  const Fd epoll_, wake_;
  std::mutex mutex_;
  std::map<const Polled*, std::shared_ptr<Polled>> polled_;
  bool is_stopping_ = false;
};

HostPoller::HostPoller() : state_(std::make_shared<State>()) {
  try {
    thread_ = std::thread([state = state_] { state->run(); });
  } catch (const std::system_error& error) {
    fail(Code::unavailable, "cannot start a thread: ", error.what());
  }
}

HostPoller::~HostPoller() {
  state_->stop();
  if (thread_.get_id() == std::this_thread::get_id()) {
    thread_.detach();  // it returns from serve() and ends
  } else {
    thread_.join();
  }
}

void HostPoller::add(std::shared_ptr<Polled> polled) { state_->add(std::move(polled)); }
void HostPoller::remove(const Polled& polled) { state_->remove(polled); }

}  // namespace leat
