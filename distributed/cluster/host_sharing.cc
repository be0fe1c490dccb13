#include "distributed/cluster/host_sharing.h"

#include <charconv>
#include <iostream>
#include <utility>

#include "core/error.h"

namespace leat {

HostSharing::HostSharing(std::string who) : who_(std::move(who)) {
  try {
    poller_ = std::make_shared<HostPoller>();
    listener_.emplace();
  } catch (const Error& error) {
    is_off_ = true;
    say_once(error.message());
  }
}

void HostSharing::open_region() const {
  try {
    SharedRegion::open();
  } catch (const Error& error) {
    std::cerr << concat("leat: ", who_,
                        " copies large tensors for other tasks of this host: ", error.message(),
                        "\n")
              << std::flush;
  }
}

std::string HostSharing::offer() const { return is_off_ ? "" : listener_->offer(); }

HostSharing::HandedOver HostSharing::hand_over(const std::string& offer, const std::string& peer) {
  if (is_off_ || !is_of_this_host(offer)) return {};
  try {
    auto [link, id] = hand_over_link(offer);
    return {std::move(link), std::to_string(id)};
  } catch (const Error& error) {
    if (error.code() != Code::aborted) say_once(concat(peer, ": ", error.message()));
    return {};
  }
}

std::unique_ptr<HostLink> HostSharing::take(const std::string& id, const std::string& peer) {
  try {
    uint64_t number = 0;
    const auto [end, error] = std::from_chars(id.data(), id.data() + id.size(), number);
    check(error == std::errc() && end == id.data() + id.size(), "'", id,
          "' is not the number of a link");
    if (is_off_) fail(Code::unavailable, "it was not asked for shared memory");
    return listener_->take(number);
  } catch (const Error& error) {
    const std::string reason = concat(peer, ": ", error.message());
    is_off_ = true;
    say_once(reason);
    fail(Code::unavailable, "cannot share memory with ", reason);
  }
}

void HostSharing::say_once(const std::string& reason) {
  if (has_said_.exchange(true)) return;
  std::cerr << concat("leat: ", who_,
                      " cannot share memory with a process of this host and uses the network: ",
                      reason, "\n")
            << std::flush;
}

}  // namespace leat
