// What crosses the border to gRPC: bytes, an outcome, a bidirectional stream of messages. It
// exposes nothing of gRPC and uses only the standard library, so that this library can stay
// uninstrumented under TSan.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace leat {

// Bytes to send. They are read in place; `owner` is released (on a transport thread) when nothing
// needs them any more. Without an owner they are copied at once.
struct ByteSlice {
  const void* data = nullptr;
  size_t size = 0;
  std::shared_ptr<const void> owner;
  // They do not travel: the peer reads them where they lie (RpcStream::place_of). `owner` stays
  // until it has.
  bool is_lent = false;

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
  for (const ByteSlice& slice : slices) bytes += slice.is_lent ? 0 : slice.size;
  return bytes;
}

// The limit of one message, either way: gRPC writes the length as 32 bits, and a longer message
// never arrives. A longer one is answered with RESOURCE_EXHAUSTED, but an answer to a client that
// accepts several messages (RpcCallOptions::takes_pieces) is sent in pieces.
inline constexpr uint64_t largest_rpc_message = UINT32_MAX;

inline Slices to_slices(std::string text) {
  Slices slices;
  slices.emplace_back(std::move(text));
  return slices;
}

// Received bytes, in the parts in which they came. Copies share them.
class Bytes {
 public:
  Bytes() = default;
  Bytes(std::vector<std::string_view> parts, std::shared_ptr<const void> owner)
      : parts_(std::move(parts)), owner_(std::move(owner)) {
    for (std::string_view part : parts_) size_ += part.size();
  }

  size_t size() const { return size_; }
  const std::vector<std::string_view>& parts() const { return parts_; }
  // These parts of the same bytes.
  Bytes with_parts(std::vector<std::string_view> parts) const { return {std::move(parts), owner_}; }
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

// Why a call did not reach its peer, or lost it.
enum class RpcCause : uint8_t {
  none,          // not a matter of the connection
  refused,       // the host answered that nobody listens
  unresolvable,  // the host name has no address
  unreachable,   // no route, or no answer to the connection attempt
  lost,          // there was a connection: closed, reset
  silent,        // there was a connection, but no answer to its greeting or to keepalive pings
  untrusted,     // TLS: one side rejects the other's certificate, or does not speak TLS
};

// An outcome. `code` is gRPC's number, which is also leat::Code's.
struct RpcStatus {
  int code = 0;
  std::string message;
  RpcCause cause = RpcCause::none;
  std::string details = {};  // bytes beside the message; empty if the peer sent none

  bool is_ok() const { return code == 0; }
};

// A bidirectional stream of messages, either end. Thread-safe. Dropping the last handle ends it
// like cancel(), unless close() was called.
class RpcStream {
 public:
  // Called on transport threads; on_end comes exactly once, and is the last. on_message and on_end
  // never run at the same time; on_written may run beside on_message. They may still run when the
  // handle is gone, so they must keep what they use. They must not block.
  struct Events {
    // One message of the peer: one or more of its writes, whole, in order. The next message is read
    // after the return. What lies in shared memory (wire/shared_memory_stream.h) is gone then:
    // whoever keeps bytes copies them.
    std::function<void(Bytes message)> on_message;
    // OK: the peer closed. Otherwise the reason why the stream broke.
    std::function<void(const RpcStatus& status)> on_end;
    // The transport has taken over queued data: queued_bytes() has fallen.
    std::function<void()> on_written;
  };

  virtual ~RpcStream() = default;

  // Begins to read; call once. Before this, nothing is received and no end is reported.
  virtual void start(Events events) = 0;
  // Queues the bytes and returns. Slices queued while an earlier write is under way travel together
  // in one message. After the end, slices are dropped.
  virtual void write(Slices slices) = 0;
  // Bytes written here that the transport has not taken over yet, and lent ones that the peer may
  // still read.
  virtual size_t queued_bytes() const = 0;
  // Where the bytes lie in memory of ours that the peer can read; none if it cannot. They may be
  // lent: a message says where they are, and holds them in a slice.
  virtual std::optional<uint64_t> place_of(const void* /*data*/, size_t /*bytes*/) const {
    return {};
  }
  // What a peer has lent, while on_message runs with the message that says so; null if there is
  // nothing at that place. The peer may change it meanwhile: copy it before you check it.
  virtual const char* lent(uint64_t /*place*/, size_t /*bytes*/) { return nullptr; }
  // Sends queued data, then ends the stream; both sides see OK.
  virtual void close() = 0;
  // Ends the stream now; queued data is dropped.
  virtual void cancel() = 0;
  // The peer's socket address, "ipv4:127.0.0.1:43210".
  virtual std::string peer() const = 0;
  // The names of the peer's certificate, at a server that asks for one (grpc/tls.h).
  virtual std::vector<std::string> peer_names() const { return {}; }
  // The most that one message gathers, and that one write should have. A peer sees nothing before a
  // message is complete, so messages are small on a slow link. The size follows the rate at which
  // the transport takes data.
  virtual size_t message_bytes() const = 0;
};

}  // namespace leat
