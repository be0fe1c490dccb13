// Shares memory between a task and the other tasks and the clients of its host (wire/host_link.h).
// If that fails, tensors and calls go over the network, and the process logs the reason once.
#pragma once

#include <atomic>
#include <memory>
#include <optional>
#include <string>

#include "distributed/wire/host_link.h"
#include "distributed/wire/host_poller.h"

namespace leat {

// Thread-safe.
class HostSharing {
 public:
  // `who`: this task, or client, for messages.
  explicit HostSharing(std::string who);

  // Lets the peers read this process's large tensors where they lie. If that fails, they are copied
  // once more, and the process logs the reason.
  void open_region() const;

  // For a hello; "" if this task cannot share memory.
  std::string offer() const;

  struct HandedOver {
    std::unique_ptr<HostLink> link;  // null: none
    std::string id = {};             // for the answer
  };
  // To a peer (named in messages) that has made this offer. None if it is on another host, or if it
  // fails.
  HandedOver hand_over(const std::string& offer, const std::string& peer);
  // What a peer has handed over. UNAVAILABLE if it is not there: the peer writes to it already, so
  // the connection has to end. Later connections do not share memory.
  std::unique_ptr<HostLink> take(const std::string& id, const std::string& peer);

  const std::shared_ptr<HostPoller>& poller() const { return poller_; }

 private:
  void say_once(const std::string& reason);

  const std::string who_;
  std::shared_ptr<HostPoller> poller_;
  std::optional<HostLinkListener> listener_;
  std::atomic<bool> is_off_{false};  // it cannot take what peers hand over
  std::atomic<bool> has_said_{false};
};

}  // namespace leat
