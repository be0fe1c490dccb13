#include "distributed/wire/host_poller.h"

#include <sys/epoll.h>
#include <sys/eventfd.h>

#include <algorithm>
#include <array>
#include <atomic>
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
namespace {

constexpr size_t cores_per_thread = 4, most_threads = 4;
constexpr size_t cores_per_looking_task = 3;
constexpr std::chrono::microseconds usual_looks{20};

using Clock = std::chrono::steady_clock;

// What one thread serves.
class State {
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

  size_t size() const {
    std::lock_guard lock(mutex_);
    return polled_.size();
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

  void look_for(std::chrono::microseconds time) { looks_ = time; }

  void run() {
    std::vector<std::shared_ptr<Polled>> awake;  // those that have not asked for signals
    Clock::time_point last_work;
    while (collect(awake)) {
      auto served = Polled::Served::nothing;
      for (const std::shared_ptr<Polled>& polled : awake)
        served = std::max(served, polled->serve());
      const std::chrono::microseconds looks = looks_;
      if (looks.count() > 0 && !awake.empty()) {
        const Clock::time_point now = Clock::now();
        if (served != Polled::Served::nothing) last_work = now;
        if (now - last_work < looks) continue;
      }
      if (served == Polled::Served::more) continue;
      std::erase_if(awake, [](const auto& polled) { return polled->sleep(); });
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
  mutable std::mutex mutex_;
  std::map<const Polled*, std::shared_ptr<Polled>> polled_;
  bool is_stopping_ = false;
  std::atomic<std::chrono::microseconds> looks_{std::chrono::microseconds(0)};
};

}  // namespace

class HostPoller::Server {
 public:
  Server() {
    try {
      thread_ = std::thread([state = state_] { state->run(); });
    } catch (const std::system_error& error) {
      fail(Code::unavailable, "cannot start a thread: ", error.what());
    }
  }
  ~Server() {
    state_->stop();
    if (thread_.get_id() == std::this_thread::get_id()) {
      thread_.detach();  // it returns from serve() and ends
    } else {
      thread_.join();
    }
  }
  Server(const Server&) = delete;

  State& state() { return *state_; }

 private:
  const std::shared_ptr<State> state_ = std::make_shared<State>();
  std::thread thread_;
};

HostPoller::HostPoller(size_t threads, std::chrono::microseconds looks)
    : most_(threads > 0 ? threads
                        : std::clamp<size_t>(std::thread::hardware_concurrency() / cores_per_thread,
                                             1, most_threads)),
      looks_(looks) {
  servers_.push_back(std::make_unique<Server>());
}

HostPoller::~HostPoller() = default;

// To the thread that has the fewest.
void HostPoller::add(std::shared_ptr<Polled> polled) {
  std::lock_guard lock(mutex_);
  const auto first = std::min_element(
      servers_.begin(), servers_.end(),
      [](const auto& a, const auto& b) { return a->state().size() < b->state().size(); });
  State* state = &(*first)->state();
  if (state->size() > 0 && servers_.size() < most_) {
    try {
      servers_.push_back(std::make_unique<Server>());
      state = &servers_.back()->state();
    } catch (const Error&) {  // then it shares a thread
    }
  }
  state->add(std::move(polled));
  size_t links = 0;
  for (const auto& server : servers_) links += server->state().size();
  choose_looks(links);
}

// With the lock held. Each link leads to another task of the host.
void HostPoller::choose_looks(size_t links) {
  const bool has_cores =
      std::thread::hardware_concurrency() >= cores_per_looking_task * (links + 1);
  const auto looks = looks_ != by_cores ? looks_
                     : has_cores        ? usual_looks
                                        : std::chrono::microseconds(0);
  for (const auto& server : servers_) server->state().look_for(looks);
}

void HostPoller::remove(const Polled& polled) {
  std::vector<State*> states;
  {
    std::lock_guard lock(mutex_);
    for (const auto& server : servers_) states.push_back(&server->state());
  }
  for (State* state : states) state->remove(polled);
}

}  // namespace leat
