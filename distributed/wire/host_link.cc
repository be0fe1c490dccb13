#include "distributed/wire/host_link.h"

#include <fcntl.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <span>
#include <vector>

#include "distributed/random_id.h"

namespace leat {
namespace {

constexpr size_t one_ring = ring_bytes(HostLink::capacity);
constexpr size_t both_rings = 2 * one_ring;
constexpr int seals = F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL;
// Links that nobody has asked for: a peer whose connection broke meanwhile.
constexpr size_t most_arrived = 64;

Fd made(int fd, std::string_view what) {
  if (fd < 0) fail(Code::resource_exhausted, "cannot make ", what, ": ", std::strerror(errno));
  return Fd(fd);
}

// Of this boot of this machine; empty if the system does not say.
const std::string& host_id() {
  static const std::string id = [] {
    std::string text;
    std::ifstream("/proc/sys/kernel/random/boot_id") >> text;
    return text;
  }();
  return id;
}

// An abstract socket: it has a name, but no file, and goes with the process.
std::pair<sockaddr_un, socklen_t> address_of(std::string_view name) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  check(!name.empty() && name.size() < sizeof address.sun_path - 1, "a socket's name of ",
        name.size(), " bytes");
  std::memcpy(address.sun_path + 1, name.data(), name.size());
  return {address, static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + name.size())};
}

bool is_same_user(int socket) {
  ucred peer{};
  socklen_t size = sizeof peer;
  return getsockopt(socket, SOL_SOCKET, SO_PEERCRED, &peer, &size) == 0 && peer.uid == geteuid();
}

// A message of a number, with room for descriptors beside it.
struct HostMessage {
  static constexpr size_t most = 3;
  msghdr header{};

  explicit HostMessage(uint64_t& number) : data_{.iov_base = &number, .iov_len = sizeof number} {
    header.msg_iov = &data_;
    header.msg_iovlen = 1;
    header.msg_control = descriptors_;
    header.msg_controllen = sizeof descriptors_;
  }
  HostMessage(const HostMessage&) = delete;

 private:
  iovec data_;
  alignas(cmsghdr) char descriptors_[CMSG_SPACE(most * sizeof(int))] = {};
};

// False, with errno, if it cannot be sent.
bool send_message(int socket, uint64_t number, std::span<const int> fds) {
  HostMessage message(number);
  if (fds.empty()) {
    message.header.msg_controllen = 0;
  } else {
    message.header.msg_controllen = CMSG_SPACE(fds.size_bytes());
    cmsghdr* header = CMSG_FIRSTHDR(&message.header);
    header->cmsg_level = SOL_SOCKET;
    header->cmsg_type = SCM_RIGHTS;
    header->cmsg_len = CMSG_LEN(fds.size_bytes());
    std::memcpy(CMSG_DATA(header), fds.data(), fds.size_bytes());
  }
  return sendmsg(socket, &message.header, MSG_NOSIGNAL | MSG_DONTWAIT) == sizeof number;
}

struct ReceivedMessage {
  uint64_t number = 0;
  std::vector<Fd> fds;
};

// None if there is no message, or if it is none of ours.
std::optional<ReceivedMessage> receive_message(int socket) {
  ReceivedMessage out;
  HostMessage message(out.number);
  errno = 0;
  const ssize_t size = recvmsg(socket, &message.header, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
  if (size < 0) return std::nullopt;
  for (cmsghdr* at = CMSG_FIRSTHDR(&message.header); at != nullptr;
       at = CMSG_NXTHDR(&message.header, at)) {
    if (at->cmsg_level != SOL_SOCKET || at->cmsg_type != SCM_RIGHTS) continue;
    const size_t fds = (at->cmsg_len - CMSG_LEN(0)) / sizeof(int);
    for (size_t i = 0; i < fds; ++i) {
      int fd;
      std::memcpy(&fd, CMSG_DATA(at) + i * sizeof fd, sizeof fd);
      out.fds.emplace_back(fd);
    }
  }
  if (size != sizeof out.number) return std::nullopt;
  return out;
}

void send_link(int socket, const HostLink& link, uint64_t id) {
  // As the peer sees them: its signals are those to it.
  const std::array<int, 3> fds = {link.memory().get(), link.to_us().get(), link.to_peer().get()};
  if (send_message(socket, id, fds)) return;
  const bool is_ending = errno == EPIPE || errno == ECONNRESET;
  fail(is_ending ? Code::aborted : Code::unavailable,
       "cannot send it shared memory: ", std::strerror(errno));
}

}  // namespace

// ---- HostLink ----

HostLink::HostLink(Fd memory, Fd to_peer, Fd to_us, bool is_maker)
    : memory_(std::move(memory)), to_peer_(std::move(to_peer)), to_us_(std::move(to_us)) {
  void* const mapped =
      mmap(nullptr, both_rings, PROT_READ | PROT_WRITE, MAP_SHARED, memory_.get(), 0);
  if (mapped == MAP_FAILED)
    fail(Code::resource_exhausted, "cannot map shared memory: ", std::strerror(errno));
  mapped_ = mapped;
  char* const first = static_cast<char*>(mapped);
  writer_.emplace(is_maker ? first : first + one_ring, capacity);
  reader_.emplace(is_maker ? first + one_ring : first, capacity);
}

HostLink::~HostLink() {
  if (mapped_ != nullptr) munmap(mapped_, both_rings);
}

std::unique_ptr<HostLink> HostLink::make() {
  Fd memory = made(memfd_create("leat-link", MFD_CLOEXEC | MFD_ALLOW_SEALING), "shared memory");
  if (ftruncate(memory.get(), both_rings) != 0 || fcntl(memory.get(), F_ADD_SEALS, seals) != 0)
    fail(Code::resource_exhausted, "cannot make shared memory: ", std::strerror(errno));
  Fd to_peer = made(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK), "an eventfd");
  Fd to_us = made(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK), "an eventfd");
  return std::unique_ptr<HostLink>(
      new HostLink(std::move(memory), std::move(to_peer), std::move(to_us), true));
}

std::unique_ptr<HostLink> HostLink::adopt(Fd memory, Fd to_peer, Fd to_us) {
  struct stat status {};
  if (fstat(memory.get(), &status) != 0 || status.st_size != both_rings ||
      (fcntl(memory.get(), F_GET_SEALS) & F_SEAL_SHRINK) == 0)
    fail(Code::data_loss, "the memory that a peer shares has the wrong size or no seal");
  // Writing a signal must not wait.
  for (const Fd* event : {&to_peer, &to_us}) fcntl(event->get(), F_SETFL, O_NONBLOCK);
  return std::unique_ptr<HostLink>(
      new HostLink(std::move(memory), std::move(to_peer), std::move(to_us), false));
}

void HostLink::signal_peer() const {
  const uint64_t one = 1;
  // It fails only if 2^64 - 2 signals wait there.
  [[maybe_unused]] const ssize_t written = ::write(to_peer_.get(), &one, sizeof one);
}

void HostLink::signal_self() const {
  const uint64_t one = 1;
  [[maybe_unused]] const ssize_t written = ::write(to_us_.get(), &one, sizeof one);
}

void HostLink::lend(const SharedRegion* region) {
  if (!socket_) return;
  if (region == nullptr) return socket_.close();  // the peer sees that
  const int fd = region->descriptor().get();
  if (!send_message(socket_.get(), 0, {&fd, 1})) return socket_.close();  // the number says nothing
  awaits_region_ = true;
  signal_peer();
}

void HostLink::receive_region() {
  if (!awaits_region_) return;
  const std::optional<ReceivedMessage> got = receive_message(socket_.get());
  if (!got && (errno == EAGAIN || errno == EINTR)) return;
  awaits_region_ = false;
  socket_.close();
  if (!got || got->fds.size() != 1) return;
  try {
    peer_region_ = std::make_unique<PeerRegion>(got->fds[0]);
    reader_->allow_lending();
  } catch (const Error&) {  // then all goes through the ring
  }
}

// ---- HostLinkListener ----

HostLinkListener::HostLinkListener() {
  const std::string name = concat("leat-", getpid(), '-', std::hex, random_id(), random_id());
  const auto [address, size] = address_of(name);
  socket_ = Fd(socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!socket_ || bind(socket_.get(), reinterpret_cast<const sockaddr*>(&address), size) != 0 ||
      listen(socket_.get(), SOMAXCONN) != 0)
    fail(Code::unavailable, "cannot listen on a socket of this host: ", std::strerror(errno));
  offer_ = concat(host_id(), ' ', name);
}

std::unique_ptr<HostLink> HostLinkListener::take(uint64_t id) {
  std::lock_guard lock(mutex_);
  accept_all();
  const auto found = arrived_.find(id);
  if (found == arrived_.end()) fail(Code::not_found, "the peer's shared memory has not come");
  auto link = std::move(found->second);
  arrived_.erase(found);
  return link;
}

// A peer sends its link before it says so: what has not come with its connection never will.
void HostLinkListener::accept_all() {
  for (;;) {
    Fd peer(accept4(socket_.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
    if (!peer) {
      if (errno == EINTR || errno == ECONNABORTED) continue;
      return;
    }
    if (!is_same_user(peer.get())) continue;
    std::optional<ReceivedMessage> got = receive_message(peer.get());
    if (!got || got->fds.size() != 3 || arrived_.size() == most_arrived) continue;
    try {
      auto& fds = got->fds;
      auto link = HostLink::adopt(std::move(fds[0]), std::move(fds[1]), std::move(fds[2]));
      link->keep_socket(std::move(peer));
      arrived_.emplace(got->number, std::move(link));
    } catch (const Error&) {  // whoever asks for it learns that it is not there
    }
  }
}

bool is_of_this_host(const std::string& offer) {
  return !host_id().empty() && offer.starts_with(host_id() + ' ');
}

std::pair<std::unique_ptr<HostLink>, uint64_t> hand_over_link(const std::string& offer) {
  check(is_of_this_host(offer), "an offer of shared memory that is not of this host");
  const auto [address, size] = address_of(std::string_view(offer).substr(host_id().size() + 1));
  // Does not wait: the kernel connects at once, or the listener's queue is full.
  Fd peer(socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!peer || connect(peer.get(), reinterpret_cast<const sockaddr*>(&address), size) != 0) {
    fail(Code::unavailable, "its socket on this host cannot be reached (", std::strerror(errno),
         "): it may be in another container");
  }
  if (!is_same_user(peer.get())) fail(Code::unavailable, "it belongs to another user");
  auto link = HostLink::make();
  const uint64_t id = random_id();
  send_link(peer.get(), *link, id);
  link->keep_socket(std::move(peer));
  return {std::move(link), id};
}

}  // namespace leat
