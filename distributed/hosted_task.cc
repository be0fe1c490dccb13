#include "distributed/hosted_task.h"

#include <poll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <iostream>
#include <thread>

#include "core/error.h"
#include "distributed/cluster/host_owner.h"
#include "distributed/cluster/membership.h"
#include "distributed/cluster/tls.h"
#include "runtime/step_activity.h"

namespace leat {
namespace {

using Clock = std::chrono::steady_clock;
using std::chrono::milliseconds;

constexpr milliseconds longest_wait = std::chrono::seconds(60);
constexpr milliseconds name_interval{500};  // between two questions for our own address
// Without a launcher: reports missing tasks this long after the start, then at this interval.
constexpr milliseconds first_note{2'000}, note_interval{10'000};

// Who is missing, for the launcher and for the console.
std::vector<MissingPeer> missing_peers(const Membership& membership) {
  std::vector<MissingPeer> out;
  for (const PeerStatus& peer : membership.peers()) {
    if (peer.state == PeerState::connected) continue;
    const std::string state(peer_state_name(peer.state));
    out.push_back({peer.task, peer.address,
                   peer.reason.empty() ? state : state + ": " + peer.reason,
                   peer.state == PeerState::refused});
  }
  return out;
}

// Who said goodbye, or died.
std::vector<MissingPeer> peers_that_left(const Membership& membership) {
  std::vector<MissingPeer> out;
  for (const PeerStatus& peer : membership.peers()) {
    const bool has_left = peer.state != PeerState::connected && peer.incarnation != 0;
    if (has_left) out.push_back({peer.task, peer.address, peer.reason});
  }
  return out;
}

// ALREADY_EXISTS if another process owns this task: the others tell, and waiting does not help.
Status owner_conflict(const Membership& membership) {
  try {
    membership.wait_until_connected(milliseconds(0));
  } catch (const Error& error) {
    if (error.code() == Code::already_exists) return error.status();
  }
  return {};
}

}  // namespace

// Wakes the waiting thread when another task has come or gone.
class HostedTask::News {
 public:
  News() : fd_(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {
    if (fd_ < 0) fail(Code::resource_exhausted, "no file descriptors are left");
  }
  ~News() { close(fd_); }
  News(const News&) = delete;

  void notify() const {
    const uint64_t one = 1;
    [[maybe_unused]] const ssize_t written = write(fd_, &one, sizeof(one));
  }
  void take() const {
    uint64_t count = 0;
    [[maybe_unused]] const ssize_t got = read(fd_, &count, sizeof(count));
  }
  int fd() const { return fd_; }

 private:
  const int fd_;
};

HostedTask::HostedTask(const ResolvedCluster& cluster, HostedTaskOptions options)
    : options_(std::move(options)), link_(options_.launcher_fd), news_(std::make_unique<News>()) {
  try {
    wait_for_name(HostPort::parse(cluster.spec.address(*cluster.task)).host);
    TaskOptions task = options_.task;
    task.on_peer_change = [news = news_.get(), also = options_.task.on_peer_change] {
      news->notify();
      if (also) also();
    };
    ClusterSpec spec = cluster.spec;
    spec.set_tls(merged(tls_from_environment(), spec.tls()));
    task_ = std::make_unique<Task>(spec, *cluster.task, task);
    if (const std::string& line = task_->exposure(); !line.empty()) std::cout << line << std::endl;
    cluster_ = link_.bound(cluster.spec, *cluster.task, task_->address(), options_.start_timeout);
    task_->start(cluster_);
  } catch (const Error& error) {
    link_.failed(error.message());
    throw;
  }
}

HostedTask::~HostedTask() = default;

// False if it shall stop.
bool HostedTask::wait(milliseconds limit) {
  pollfd fds[] = {{news_->fd(), POLLIN, 0}, {options_.stop_fd, POLLIN, 0}, {link_.fd(), POLLIN, 0}};
  if (poll(fds, 3, static_cast<int>(std::min(limit, longest_wait).count())) <= 0) return true;
  news_->take();
  return fds[1].revents == 0 && fds[2].revents == 0;
}

// A host may get its name after its processes. After the time-out, or when it shall stop, whoever
// listens says what is wrong.
void HostedTask::wait_for_name(const std::string& host) {
  const Clock::time_point deadline = Clock::now() + options_.start_timeout;
  const auto is_resolved = [&] {
    const HostOwner owner = owner_of_host(host);
    return owner == HostOwner::ours || owner == HostOwner::other;
  };
  for (bool is_told = false; !is_resolved(); is_told = true) {
    if (options_.start_timeout.count() > 0 && Clock::now() >= deadline) return;
    if (!is_told) std::cout << host << " cannot be resolved yet; waiting" << std::endl;
    if (!wait(name_interval)) return;
  }
}

bool HostedTask::wait_for_peers() {
  const bool is_limited = options_.start_timeout.count() > 0, is_alone = link_.fd() < 0;
  const Clock::time_point start = Clock::now(), deadline = start + options_.start_timeout;
  const milliseconds pause = is_alone ? first_note : note_interval;
  Clock::time_point next_note = start + first_note;
  std::string told;
  while (true) {
    const std::vector<MissingPeer> missing = missing_peers(task_->membership());
    if (missing.empty()) break;
    const std::string table = task_->membership().table(/*only_missing=*/true);
    if (table != told) {
      link_.waiting(missing);
      told = table;
    }
    if (is_alone && Clock::now() >= next_note) {
      std::cout << "waiting for\n" << table << std::flush;
      next_note = Clock::now() + note_interval;
    }
    try {
      if (const Status refused = owner_conflict(task_->membership()); !refused.is_ok())
        throw Error(refused);
      const auto left = std::chrono::ceil<milliseconds>(deadline - Clock::now());
      if (is_limited && left.count() <= 0) {
        fail(Code::unavailable, "not all tasks of the cluster connected within ",
             seconds_text(options_.start_timeout), ":\n", table);
      }
      if (!wait(is_limited ? std::min(left, pause) : pause)) return false;
    } catch (const Error& error) {
      link_.failed(error.message());
      throw;
    }
  }
  link_.ready(concat(std::thread::hardware_concurrency(), " cores"));
  return true;
}

void HostedTask::serve() {
  while (wait(longest_wait)) link_.left(peers_that_left(task_->membership()));
}

}  // namespace leat
