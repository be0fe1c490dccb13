#include "distributed/grpc/listener.h"

#include <fcntl.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <stdexcept>
#include <utility>

namespace leat::transport {
namespace {

constexpr int backlog = 1024;
constexpr int pause_ms = 10;  // before accepting again without descriptors

int open_reserve() { return open("/dev/null", O_RDONLY | O_CLOEXEC); }

void set_port(addrinfo& address, int port) {
  const in_port_t wire = htons(static_cast<uint16_t>(port));
  if (address.ai_family == AF_INET6) {
    reinterpret_cast<sockaddr_in6*>(address.ai_addr)->sin6_port = wire;
  } else {
    reinterpret_cast<sockaddr_in*>(address.ai_addr)->sin_port = wire;
  }
}

int port_of(int socket) {
  sockaddr_storage address{};
  socklen_t length = sizeof address;
  if (getsockname(socket, reinterpret_cast<sockaddr*>(&address), &length) != 0) return 0;
  return ntohs(address.ss_family == AF_INET6 ? reinterpret_cast<sockaddr_in6&>(address).sin6_port
                                             : reinterpret_cast<sockaddr_in&>(address).sin_port);
}

// A listening socket, or -1 with errno.
int listen_on(const addrinfo& address) {
  const int fd = socket(address.ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  if (fd < 0) return -1;
  const int yes = 1;
  setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
  if (address.ai_family == AF_INET6) {  // "[::]" is IPv6 and IPv4
    const int only = 0;
    setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &only, sizeof only);
  }
  if (bind(fd, address.ai_addr, address.ai_addrlen) == 0 && listen(fd, backlog) == 0) return fd;
  const int error = errno;
  close(fd);
  errno = error;
  return -1;
}

}  // namespace

Listener::Listener(const std::string& address) {
  const size_t colon = address.rfind(':');
  if (colon == std::string::npos) throw std::runtime_error("an address is host:port");
  std::string host = address.substr(0, colon);
  if (host.starts_with('[') && host.ends_with(']')) host = host.substr(1, host.size() - 2);
  addrinfo hints{};
  hints.ai_family = AF_UNSPEC;
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = AI_PASSIVE | AI_NUMERICSERV;
  addrinfo* found = nullptr;
  if (const int error = getaddrinfo(host.empty() ? nullptr : host.c_str(),
                                    address.substr(colon + 1).c_str(), &hints, &found);
      error != 0) {
    throw std::runtime_error(gai_strerror(error));
  }
  const std::unique_ptr<addrinfo, decltype(&freeaddrinfo)> kept(found, freeaddrinfo);
  std::string reason;
  for (addrinfo* at = found; at != nullptr; at = at->ai_next) {
    if (port_ != 0) set_port(*at, port_);
    const int fd = listen_on(*at);
    if (fd < 0) {
      // "[::]" may have taken IPv4's port with it.
      if (reason.empty() || sockets_.empty()) reason = std::strerror(errno);
      continue;
    }
    sockets_.push_back(fd);
    port_ = port_of(fd);
  }
  if (sockets_.empty()) throw std::runtime_error(reason);
  stop_ = eventfd(0, EFD_CLOEXEC);
  reserve_ = open_reserve();
}

Listener::~Listener() {
  if (thread_.joinable()) {
    const uint64_t one = 1;
    [[maybe_unused]] const ssize_t written = write(stop_, &one, sizeof one);
    thread_.join();
  }
  for (const int fd : sockets_) close(fd);
  if (stop_ >= 0) close(stop_);
  if (reserve_ >= 0) close(reserve_);
}

void Listener::start(Accepted accepted) {
  if (stop_ < 0) throw std::runtime_error(std::strerror(EMFILE));
  accepted_ = std::move(accepted);
  thread_ = std::thread([this] { run(); });
}

void Listener::run() {
  std::vector<pollfd> polled{{stop_, POLLIN, 0}};
  for (const int fd : sockets_) polled.push_back({fd, POLLIN, 0});
  while (true) {
    if (poll(polled.data(), polled.size(), -1) < 0) continue;
    if (polled[0].revents != 0) return;
    for (size_t i = 1; i < polled.size(); ++i) {
      if (polled[i].revents == 0) continue;
      while (accept_one(polled[i].fd)) {
      }
    }
  }
}

// False when there is nobody left to accept, or no way to.
bool Listener::accept_one(int listener) {
  const int fd = accept4(listener, nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK);
  if (fd >= 0) {
    const int yes = 1;
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &yes, sizeof yes);
    accepted_(listener, fd);
    return true;
  }
  const int error = errno;
  if (error == EINTR || error == ECONNABORTED) return true;
  if (error == EAGAIN) return false;
  if (error != EMFILE && error != ENFILE) {  // no memory, a firewall: the connection stays there
    poll(nullptr, 0, pause_ms);
    return false;
  }
  // Take the connection with the last descriptor, and let it go.
  if (reserve_ >= 0) close(reserve_);
  const int refused = accept4(listener, nullptr, nullptr, SOCK_CLOEXEC);
  if (refused >= 0) {
    const linger reset{1, 0};
    setsockopt(refused, SOL_SOCKET, SO_LINGER, &reset, sizeof reset);
    close(refused);
  }
  reserve_ = open_reserve();
  if (refused < 0 || reserve_ < 0) poll(nullptr, 0, pause_ms);
  return refused >= 0;
}

}  // namespace leat::transport
