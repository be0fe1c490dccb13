#include "distributed/grpc/handshake_watch.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <vector>

#include "distributed/grpc/credentials.h"

namespace leat::transport {
namespace {

using Clock = std::chrono::steady_clock;

constexpr size_t most_watched = 1024;
// After this, a connection that has neither ended nor made a call is left to gRPC's own limits.
constexpr auto longest_watch = std::chrono::seconds(10);

// As gRPC writes it, but for the brackets of IPv6, which it escapes.
std::string address_of(int connection) {
  sockaddr_storage address{};
  socklen_t length = sizeof address;
  char text[INET6_ADDRSTRLEN] = {};
  if (getpeername(connection, reinterpret_cast<sockaddr*>(&address), &length) != 0) return {};
  if (address.ss_family == AF_INET) {
    const auto& in = reinterpret_cast<const sockaddr_in&>(address);
    inet_ntop(AF_INET, &in.sin_addr, text, sizeof text);
    return std::string("ipv4:") + text + ":" + std::to_string(ntohs(in.sin_port));
  }
  if (address.ss_family != AF_INET6) return {};
  const auto& in = reinterpret_cast<const sockaddr_in6&>(address);
  const std::string port = ":" + std::to_string(ntohs(in.sin6_port));
  if (IN6_IS_ADDR_V4MAPPED(&in.sin6_addr)) {
    inet_ntop(AF_INET, &in.sin6_addr.s6_addr[12], text, sizeof text);
    return std::string("ipv4:") + text + port;
  }
  inet_ntop(AF_INET6, &in.sin6_addr, text, sizeof text);
  return std::string("ipv6:[") + text + "]" + port;
}

std::string with_brackets(std::string peer) {
  for (const auto& [escaped, plain] : {std::pair("%5B", "["), std::pair("%5D", "]")}) {
    if (const size_t at = peer.find(escaped); at != std::string::npos) peer.replace(at, 3, plain);
  }
  return peer;
}

}  // namespace

HandshakeWatch::HandshakeWatch(Failed failed)
    : failed_(std::move(failed)), wake_(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {
  thread_ = std::thread([this] { run(); });
}

HandshakeWatch::~HandshakeWatch() {
  {
    std::lock_guard lock(mutex_);
    is_stopping_ = true;
  }
  const uint64_t one = 1;
  [[maybe_unused]] const ssize_t written = write(wake_, &one, sizeof one);
  thread_.join();
  for (const auto& [peer, watched] : watched_) close(watched.fd);
  close(wake_);
}

void HandshakeWatch::accepted(int connection) {
  const std::string peer = address_of(connection);
  if (peer.empty()) return;
  std::lock_guard lock(mutex_);
  if (watched_.size() >= most_watched || watched_.contains(peer)) return;
  const int fd = fcntl(connection, F_DUPFD_CLOEXEC, 0);
  if (fd < 0) return;
  watched_[peer] = {fd, Clock::now()};
  const uint64_t one = 1;
  [[maybe_unused]] const ssize_t written = write(wake_, &one, sizeof one);
}

void HandshakeWatch::passed(const std::string& peer) {
  std::lock_guard lock(mutex_);
  const auto found = watched_.find(with_brackets(peer));
  if (found == watched_.end()) return;
  close(found->second.fd);
  watched_.erase(found);
}

// The descriptors that are polled are copies of the map's: passed() may close one meanwhile, and
// another connection may get its number; so an event only makes us look at the map again.
void HandshakeWatch::run() {
  while (true) {
    std::vector<pollfd> polled{{wake_, POLLIN, 0}};
    {
      std::lock_guard lock(mutex_);
      if (is_stopping_) return;
      for (const auto& [peer, watched] : watched_) polled.push_back({watched.fd, 0, 0});
    }
    poll(polled.data(), polled.size(), polled.size() > 1 ? 1'000 : -1);
    uint64_t count = 0;
    [[maybe_unused]] const ssize_t got = read(wake_, &count, sizeof count);
    std::vector<std::string> ended;
    {
      std::lock_guard lock(mutex_);
      const auto now = Clock::now();
      for (auto at = watched_.begin(); at != watched_.end();) {
        pollfd state{at->second.fd, 0, 0};
        const bool has_ended = poll(&state, 1, 0) > 0 && (state.revents & (POLLHUP | POLLERR)) != 0;
        if (has_ended) ended.push_back(at->first);
        if (has_ended || now - at->second.since > longest_watch) {
          close(at->second.fd);
          at = watched_.erase(at);
        } else {
          ++at;
        }
      }
    }
    for (const std::string& peer : ended) failed_(peer, take_handshake_failure());
  }
}

}  // namespace leat::transport
