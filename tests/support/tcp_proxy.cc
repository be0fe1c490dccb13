#include "tests/support/tcp_proxy.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <deque>
#include <list>
#include <stdexcept>
#include <vector>

#include "distributed/cluster/cluster_spec.h"

namespace leat {
namespace {

using Clock = std::chrono::steady_clock;

constexpr int tick_ms = 2;       // how late a command may be
constexpr size_t large = 32768;  // only tensors are this large

sockaddr_in loopback(int port) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(static_cast<uint16_t>(port));
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  return address;
}

// Closing sends RST instead of FIN.
void make_reset(int fd) {
  const linger off{1, 0};
  setsockopt(fd, SOL_SOCKET, SO_LINGER, &off, sizeof off);
}

void make_quick(int fd) {
  fcntl(fd, F_SETFL, O_NONBLOCK);
  const int one = 1;
  setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
}

}  // namespace

// One connection and its other half. Direction 0 is from the client to the target.
class TcpProxy::Relay {
 public:
  Relay(TcpProxy& proxy, int client, int target) : proxy_(proxy), fds_{client, target} {
    ++proxy_.connections_;
  }
  ~Relay() {
    for (const int fd : fds_) close(fd);
    --proxy_.connections_;
  }
  Relay(const Relay&) = delete;

  void reset() {
    for (const int fd : fds_) make_reset(fd);
  }
  void add_to(std::vector<pollfd>& polled) const {
    for (int from = 0; from < 2; ++from) {
      const short read = is_closed_[from] || proxy_.stalled_[from] ? 0 : POLLIN;
      const short write = pieces_[1 - from].empty() || proxy_.stalled_[1 - from] ? 0 : POLLOUT;
      polled.push_back({fds_[from], static_cast<short>(read | write), 0});
    }
  }
  // False when both directions have ended.
  bool pass() {
    for (int direction = 0; direction < 2; ++direction) {
      if (proxy_.stalled_[direction]) continue;
      read(direction);
      if (!write(direction)) return false;
    }
    return !(is_closed_[0] && is_closed_[1] && pieces_[0].empty() && pieces_[1].empty());
  }

 private:
  struct Piece {
    Clock::time_point due;
    std::string bytes;
  };

  void read(int direction) {
    const int64_t limit = proxy_.limit_;
    if (is_closed_[direction] || pieces_[direction].size() > (limit > 0 ? 0 : 64)) return;
    char buffer[65536];
    const size_t size = limit > 0
                            ? static_cast<size_t>(std::min<int64_t>(limit / 50 + 1, sizeof buffer))
                            : sizeof buffer;
    const ssize_t got = recv(fds_[direction], buffer, size, 0);
    if (got < 0) {
      if (errno != EAGAIN && errno != EINTR) is_closed_[direction] = true;
      return;
    }
    if (got == 0) {
      is_closed_[direction] = true;
      return;
    }
    std::string bytes(buffer, static_cast<size_t>(got));
    std::atomic<int>* to_corrupt = &proxy_.to_corrupt_;
    if (direction == 1 && bytes.size() >= large && proxy_.large_to_corrupt_ > 0)
      to_corrupt = &proxy_.large_to_corrupt_;
    if (*to_corrupt > 0) {
      --*to_corrupt;
      bytes[bytes.size() / 2] = static_cast<char>(bytes[bytes.size() / 2] ^ 0x10);
    }
    const auto passing =
        std::chrono::microseconds(limit > 0 ? static_cast<int64_t>(got) * 1'000'000 / limit : 0);
    pieces_[direction].push_back(
        {Clock::now() + std::chrono::milliseconds(proxy_.delay_ms_) + passing, std::move(bytes)});
  }

  bool write(int direction) {
    const int to = fds_[1 - direction];
    std::deque<Piece>& pieces = pieces_[direction];
    while (!pieces.empty() && pieces.front().due <= Clock::now()) {
      std::string& bytes = pieces.front().bytes;
      const ssize_t sent = send(to, bytes.data(), bytes.size(), MSG_NOSIGNAL);
      if (sent < 0) return errno == EAGAIN || errno == EINTR;
      proxy_.passed_[direction] += sent;
      bytes.erase(0, static_cast<size_t>(sent));
      if (bytes.empty()) pieces.pop_front();
    }
    if (pieces.empty() && is_closed_[direction]) shutdown(to, SHUT_WR);
    return true;
  }

  TcpProxy& proxy_;
  const int fds_[2];  // client, target
  std::deque<Piece> pieces_[2];
  bool is_closed_[2] = {false, false};
};

TcpProxy::TcpProxy(const std::string& target) : target_(target) {
  listener_ = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  sockaddr_in address = loopback(0);
  socklen_t length = sizeof address;
  if (listener_ < 0 || bind(listener_, reinterpret_cast<sockaddr*>(&address), length) != 0 ||
      listen(listener_, 64) != 0 ||
      getsockname(listener_, reinterpret_cast<sockaddr*>(&address), &length) != 0) {
    throw std::runtime_error("no port for a proxy");
  }
  port_ = ntohs(address.sin_port);
  thread_ = std::thread([this] { run(); });
}

TcpProxy::~TcpProxy() {
  is_stopping_ = true;
  thread_.join();
  close(listener_);
}

std::string TcpProxy::address() const { return "127.0.0.1:" + std::to_string(port_); }

void TcpProxy::reset() {
  const int asked = ++resets_;
  for (int done = resets_done_; done < asked; done = resets_done_) resets_done_.wait(done);
}

void TcpProxy::run() {
  std::list<Relay> relays;
  while (!is_stopping_) {
    std::vector<pollfd> polled{{listener_, POLLIN, 0}};
    for (const Relay& relay : relays) relay.add_to(polled);
    poll(polled.data(), polled.size(), tick_ms);
    if (const int asked = resets_; asked != resets_done_) {
      for (Relay& relay : relays) relay.reset();
      relays.clear();
      resets_done_ = asked;
      resets_done_.notify_all();
    }
    while (true) {
      const int client = accept4(listener_, nullptr, nullptr, SOCK_CLOEXEC);
      if (client < 0) break;
      const int target = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
      const sockaddr_in address = loopback(HostPort::parse(target_).port);
      const bool is_connected =
          !is_refusing_ &&
          connect(target, reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0;
      make_quick(client);
      make_quick(target);
      relays.emplace_back(*this, client, target);
      if (is_connected) continue;
      relays.back().reset();
      relays.pop_back();
    }
    relays.remove_if([](Relay& relay) { return !relay.pass(); });
  }
}

}  // namespace leat
