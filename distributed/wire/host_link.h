// Memory that two processes of one host share for the tensors between them, and how one hands it to
// the other: over a socket of the host, whose kernel says which user is at the other end.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>

#include "core/error.h"
#include "core/fd.h"
#include "core/memory/shared_region.h"
#include "distributed/wire/shared_ring.h"

namespace leat {

// A ring for each direction, and a signal for each end.
class HostLink {
 public:
  static constexpr size_t capacity = size_t{2} << 20;  // of each ring

  // Makes a link, to be handed over. RESOURCE_EXHAUSTED if there is no memory or descriptor left.
  static std::unique_ptr<HostLink> make();
  // The other end of a link that a peer has made. DATA_LOSS unless the memory has the right size
  // and the peer cannot cut it short.
  static std::unique_ptr<HostLink> adopt(Fd memory, Fd to_peer, Fd to_us);
  // The socket on which the link was handed over: lend() needs it.
  void keep_socket(Fd socket) { socket_ = std::move(socket); }
  ~HostLink();
  HostLink(const HostLink&) = delete;

  RingWriter& writer() { return *writer_; }
  RingReader& reader() { return *reader_; }
  int signals() const { return to_us_.get(); }  // an eventfd; nobody reads it (host_poller.h)
  void signal_peer() const;
  void signal_self() const;

  // Lets the peer read `region`, and from then on awaits the peer's. Without one nothing is lent in
  // either direction: a process whose addresses are limited must not map the peer's either.
  void lend(const SharedRegion* region);
  // Takes the peer's region, once it has come. No effect before lend().
  void receive_region();
  // What a peer has lent; null if there is nothing at that place.
  const char* lent(uint64_t place, size_t bytes) const {
    return peer_region_ ? peer_region_->at(place, bytes) : nullptr;
  }

  const Fd& memory() const { return memory_; }
  const Fd& to_peer() const { return to_peer_; }
  const Fd& to_us() const { return to_us_; }

 private:
  HostLink(Fd memory, Fd to_peer, Fd to_us, bool is_maker);

  Fd memory_, to_peer_, to_us_, socket_;
  bool awaits_region_ = false;
  std::unique_ptr<PeerRegion> peer_region_;
  void* mapped_ = nullptr;
  std::optional<RingWriter> writer_;
  std::optional<RingReader> reader_;
};

// Where the other tasks of this host hand over links. Thread-safe.
class HostLinkListener {
 public:
  // UNAVAILABLE, with the reason, if this system offers no such socket.
  HostLinkListener();

  // What a task tells its peers: this host, and the name of the socket, which nobody can guess.
  const std::string& offer() const { return offer_; }
  // The link of that id, which a peer says it has handed over. NOT_FOUND if it is not there.
  std::unique_ptr<HostLink> take(uint64_t id);

 private:
  void accept_all();

  Fd socket_;
  std::string offer_;
  std::mutex mutex_;
  std::map<uint64_t, std::unique_ptr<HostLink>> arrived_;
};

// Is the task that makes this offer on our host?
bool is_of_this_host(const std::string& offer);
// Makes a link and hands it to the process that made the offer: the link and its id. UNAVAILABLE,
// with the reason, if that process cannot be reached this way or belongs to another user; ABORTED
// if it is ending.
std::pair<std::unique_ptr<HostLink>, uint64_t> hand_over_link(const std::string& offer);

}  // namespace leat
