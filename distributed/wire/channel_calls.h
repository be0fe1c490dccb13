// Calls over a channel, beside its tensors: each is one frame, and so is its answer. They save what
// a call of gRPC's costs: on one host they go through shared memory.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <unordered_map>

#include "distributed/grpc/rpc_client.h"
#include "distributed/grpc/rpc_server.h"
#include "distributed/wire/frame.h"

namespace leat {

// What an end does with the calls of its peer.
struct CallHandlers {
  // On the thread that received it, which it must not block. Empty: there is no such method.
  std::function<void(RpcCall)> handle = {};
  // Keeps an answer that is too large for a frame (RpcServer::keeper). Empty: it is
  // RESOURCE_EXHAUSTED.
  std::function<RpcStatus(Slices answer, std::shared_ptr<const void> kept)> keep = {};
};

// The calls of both directions. Thread-safe.
class ChannelCalls : public std::enable_shared_from_this<ChannelCalls> {
 public:
  using Done = RpcClient::Done;
  // Sends a frame: false if the channel does not take it.
  using Send = std::function<bool(const FrameHeader& header, const Slices& payload)>;

  // A larger request, or answer, does not go over a channel.
  static constexpr size_t largest = size_t{256} << 10;

  ChannelCalls(CallHandlers handlers, std::string peer, Send send);

  // False if the call cannot go this way; then `done` is not called. Else it is called once: with
  // the answer, or with UNAVAILABLE when the channel ends. The peer learns the deadline, but here
  // nothing ends the call when it passes: callers have their own timers.
  bool call(const std::string& method, const Slices& request, const RpcCallOptions& options,
            Done done);
  // A frame of the peer. DATA_LOSS if it contradicts itself.
  void came(const FrameHeader& header, Bytes payload);
  // The channel has ended: calls of ours fail with `status`, the peer's are cancelled.
  void ended(const RpcStatus& status);

 private:
  class Incoming;
  void called(const FrameHeader& header, const Bytes& payload);
  void answered(const FrameHeader& header, const Bytes& payload);

  const CallHandlers handlers_;
  const std::string peer_;
  const Send send_;
  std::mutex mutex_;
  int64_t last_ = 0;
  bool is_ended_ = false;
  std::unordered_map<int64_t, Done> waiting_;                     // calls of ours
  std::unordered_map<int64_t, std::weak_ptr<Incoming>> running_;  // the peer's
};

}  // namespace leat
