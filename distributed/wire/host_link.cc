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

// A message of the id, with room for three descriptors beside it.
struct LinkMessage {
  msghdr header{};

  explicit LinkMessage(uint64_t& id) : data_{.iov_base = &id, .iov_len = sizeof id} {
    header.msg_iov = &data_;
    header.msg_iovlen = 1;
    header.msg_control = descriptors_;
    header.msg_controllen = sizeof descriptors_;
  }
  LinkMessage(const LinkMessage&) = delete;

 private:
  iovec data_;
  alignas(cmsghdr) char descriptors_[CMSG_SPACE(3 * sizeof(int))] = {};
};

void send_link(int socket, const HostLink& link, uint64_t id) {
  // As the peer sees them: its signals are those to it.
  const std::array<int, 3> fds = {link.memory().get(), link.to_us().get(), link.to_peer().get()};
  LinkMessage message(id);
  cmsghdr* header = CMSG_FIRSTHDR(&message.header);
  header->cmsg_level = SOL_SOCKET;
  header->cmsg_type = SCM_RIGHTS;
  header->cmsg_len = CMSG_LEN(sizeof fds);
  std::memcpy(CMSG_DATA(header), fds.data(), sizeof fds);
  if (sendmsg(socket, &message.header, MSG_NOSIGNAL) != sizeof id) {
    const bool is_ending = errno == EPIPE || errno == ECONNRESET;
    fail(is_ending ? Code::aborted : Code::unavailable,
         "cannot send it shared memory: ", std::strerror(errno));
  }
}

struct ReceivedLink {
  uint64_t id = 0;
  std::array<Fd, 3> fds;
};

// None if what has come is no link.
std::optional<ReceivedLink> receive_link(int socket) {
  ReceivedLink out;
  LinkMessage message(out.id);
  const ssize_t size = recvmsg(socket, &message.header, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
  if (size < 0) return std::nullopt;
  size_t count = 0;
  for (cmsghdr* at = CMSG_FIRSTHDR(&message.header); at != nullptr;
       at = CMSG_NXTHDR(&message.header, at)) {
    if (at->cmsg_level != SOL_SOCKET || at->cmsg_type != SCM_RIGHTS) continue;
    const size_t fds = (at->cmsg_len - CMSG_LEN(0)) / sizeof(int);
    for (size_t i = 0; i < fds; ++i) {
      int fd;
      std::memcpy(&fd, CMSG_DATA(at) + i * sizeof fd, sizeof fd);
      Fd owned(fd);
      if (count < out.fds.size()) out.fds[count++] = std::move(owned);
    }
  }
  if (size != sizeof out.id || count != out.fds.size()) return std::nullopt;
  return out;
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
    const Fd peer(accept4(socket_.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
    if (!peer) {
      if (errno == EINTR || errno == ECONNABORTED) continue;
      return;
    }
    if (!is_same_user(peer.get())) continue;
    std::optional<ReceivedLink> got = receive_link(peer.get());
    if (!got || arrived_.size() == most_arrived) continue;
    try {
      auto& fds = got->fds;
      arrived_.emplace(got->id,
                       HostLink::adopt(std::move(fds[0]), std::move(fds[1]), std::move(fds[2])));
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
  const Fd peer(socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!peer || connect(peer.get(), reinterpret_cast<const sockaddr*>(&address), size) != 0) {
    fail(Code::unavailable, "its socket on this host cannot be reached (", std::strerror(errno),
         "): it may be in another container");
  }
  if (!is_same_user(peer.get())) fail(Code::unavailable, "it belongs to another user");
  auto link = HostLink::make();
  const uint64_t id = random_id();
  send_link(peer.get(), *link, id);
  return {std::move(link), id};
}

}  // namespace leat
