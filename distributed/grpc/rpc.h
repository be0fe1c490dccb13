// What crosses the border to gRPC: bytes, an outcome, a bidirectional stream of messages. Nothing
// of gRPC shows, and nothing but the standard library is used, so that this library can stay
// uninstrumented under TSan.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace leat {

// Bytes to send. They are read from where they lie; `owner` is let go (on a transport thread) when
// nothing needs them any more. Without an owner they are copied at once.
struct ByteSlice {
  const void* data = nullptr;
  size_t size = 0;
  std::shared_ptr<const void> owner;

  ByteSlice() = default;
  ByteSlice(const void* data, size_t size, std::shared_ptr<const void> owner)
      : data(data), size(size), owner(std::move(owner)) {}
  explicit ByteSlice(std::string text) {
    auto kept = std::make_shared<const std::string>(std::move(text));
    data = kept->data();
    size = kept->size();
    owner = std::move(kept);
  }
};
using Slices = std::vector<ByteSlice>;

inline uint64_t bytes_of(const Slices& slices) {
  uint64_t bytes = 0;
  for (const ByteSlice& slice : slices) bytes += slice.size;
  return bytes;
}

// Of a call, either way: gRPC writes the length of a message as 32 bits, and what is longer never
// arrives. A longer one is answered with RESOURCE_EXHAUSTED, but an answer to a client that takes
// several messages as one (RpcCallOptions::takes_pieces) comes in pieces.
inline constexpr uint64_t largest_rpc_message = UINT32_MAX;

inline Slices to_slices(std::string text) {
  Slices slices;
  slices.emplace_back(std::move(text));
  return slices;
}

// Bytes received, in the parts in which they came. A copy shares them.
class Bytes {
 public:
  Bytes() = default;
  Bytes(std::vector<std::string_view> parts, std::shared_ptr<const void> owner)
      : parts_(std::move(parts)), owner_(std::move(owner)) {
    for (std::string_view part : parts_) size_ += part.size();
  }

  size_t size() const { return size_; }
  const std::vector<std::string_view>& parts() const { return parts_; }
  std::string to_string() const {
    std::string text;
    text.reserve(size_);
    for (std::string_view part : parts_) text.append(part);
    return text;
  }

 private:
  std::vector<std::string_view> parts_;
  std::shared_ptr<const void> owner_;
  size_t size_ = 0;
};

// Why a call could not reach its peer, or lost it.
enum class RpcCause : uint8_t {
  none,          // not a matter of the connection
  refused,       // the host answered that nobody listens
  unresolvable,  // the host name has no address
  unreachable,   // no route, or no answer to the connection attempt
  lost,          // there was a connection: closed, reset
  silent,        // there was a connection, and no answer: to its greeting, or to keepalive pings
  untrusted,     // TLS: one side does not take the other's certificate, or does not speak it
};

// An outcome. `code` is gRPC's number, which is also leat::Code's.
struct RpcStatus {
  int code = 0;
  std::string message;
  RpcCause cause = RpcCause::none;
  std::string details = {};  // bytes beside the message; empty if the peer sent none

  bool is_ok() const { return code == 0; }
};

// A bidirectional stream of messages, either end. Thread-safe. Letting go of the last handle ends
// it as cancel() does, unless close() was called.
class RpcStream {
 public:
  // Called on transport threads, none after on_end, which comes exactly once. on_message and on_end
  // never run at the same time; on_written may run beside on_message. They may still run when the
  // handle is gone: what they use, they must keep. They must not block.
  struct Events {
    // One message of the peer: one or several of its writes, whole, in order. The next one is read
    // after the return.
    std::function<void(Bytes message)> on_message;
    // OK: the peer closed. Otherwise why the stream broke.
    std::function<void(const RpcStatus& status)> on_end;
    // The transport has taken over what was queued, or part of it: queued_bytes() has fallen.
    std::function<void()> on_written;
  };

  virtual ~RpcStream() = default;

  // Begins to read; called once. Before this nothing is received and no end is reported.
  virtual void start(Events events) = 0;
  // Queues the bytes and returns. What is queued while an earlier write is under way travels
  // together in one message. After the end, the slices are dropped.
  virtual void write(Slices slices) = 0;
  // Written here, not yet taken over by the transport.
  virtual size_t queued_bytes() const = 0;
  // Sends what is queued, then ends the stream; both sides see OK.
  virtual void close() = 0;
  // Ends the stream now; what is queued is dropped.
  virtual void cancel() = 0;
  // The peer's socket address, "ipv4:127.0.0.1:43210".
  virtual std::string peer() const = 0;
  // The names of the peer's certificate, at a server that asks for one (grpc/tls.h).
  virtual std::vector<std::string> peer_names() const { return {}; }
  // What one message gathers at most, and what one write should: the peer hears nothing before a
  // message is whole, so on a slow link they are small. It follows the rate at which the transport
  // takes what is written.
  virtual size_t message_bytes() const = 0;
};

}  // namespace leat
