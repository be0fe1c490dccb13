// A stream between two tasks that leaves the network once they know that they share a host: then
// its messages go through memory that both map (host_link.h), and the network's stream only shows
// when the peer ends.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "distributed/grpc/rpc.h"
#include "distributed/wire/host_link.h"
#include "distributed/wire/host_poller.h"

namespace leat {

// Whether the two ends may read each other's SharedRegion: tasks of one cluster may.
enum class Lending : uint8_t { none, allowed };

// As RpcStream demands, whichever way the messages go. A message costs one copy into the ring; the
// receiver reads it there, and must not keep it after on_message has returned. Lent bytes cost no
// copy here. They are the sender's again when the message has been read: the reader signals when it
// has read all that there was.
class SharedMemoryStream : public RpcStream {
 public:
  explicit SharedMemoryStream(std::shared_ptr<RpcStream> network);
  ~SharedMemoryStream() override;

  // Later writes go through `link`, and the peer's messages are read from there. Both ends switch
  // at the same point of their conversation: call it where the peer writes nothing more to the
  // network, in on_message or just after the last write there. From then on the thread of `poller`
  // calls the events. If that fails (RESOURCE_EXHAUSTED), the stream stays as it was.
  void switch_to(std::unique_ptr<HostLink> link, std::shared_ptr<HostPoller> poller,
                 Lending lending = Lending::none);
  bool is_shared() const;

  void start(Events events) override;
  void write(Slices slices) override;
  size_t queued_bytes() const override;
  std::optional<uint64_t> place_of(const void* data, size_t bytes) const override;
  const char* lent(uint64_t place, size_t bytes) override;
  void close() override;
  void cancel() override;
  std::string peer() const override;
  std::vector<std::string> peer_names() const override;
  size_t message_bytes() const override;

 private:
  class Core;
  std::shared_ptr<Core> core_;
};

}  // namespace leat
