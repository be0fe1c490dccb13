#include "distributed/grpc/convert.h"

#include <grpc/impl/codegen/grpc_types.h>
#include <grpcpp/generic/generic_stub.h>

#include <algorithm>
#include <array>
#include <climits>
#include <sstream>

namespace leat::transport {
namespace {

constexpr size_t piece_bytes = size_t{64} << 20;
constexpr size_t copied_below = 128;  // a small slice costs more to pin than to copy

void release_owner(void* owner) {
  taken_over(owner);
  delete static_cast<std::shared_ptr<const void>*>(owner);
}

int to_int_ms(std::chrono::milliseconds time) {
  return static_cast<int>(std::clamp<int64_t>(time.count(), 1, INT_MAX));
}

struct Pattern {
  const char* text;
  RpcCause cause;
  const char* reason;  // null: what stands in the message from here on
};

constexpr const char* other_protocol = "the server there does not speak gRPC";

// In search order.
constexpr std::array patterns = {
    Pattern{"its certificate names", RpcCause::untrusted, nullptr},
    Pattern{"Tls handshake failed", RpcCause::untrusted, nullptr},
    Pattern{"Failed to create security handshaker", RpcCause::untrusted,
            "no TLS connection: our own certificate or key cannot be used"},
    Pattern{"DNS resolution failed", RpcCause::unresolvable, "the host name cannot be resolved"},
    Pattern{"Connection refused", RpcCause::refused, "Connection refused"},
    Pattern{"No route to host", RpcCause::unreachable, "No route to host"},
    Pattern{"Network is unreachable", RpcCause::unreachable, "Network is unreachable"},
    Pattern{"No such file or directory", RpcCause::refused, "No such file or directory"},
    Pattern{"FD shutdown", RpcCause::unreachable, "the connection attempt timed out"},
    Pattern{"connect() timed out", RpcCause::unreachable, "the connection attempt timed out"},
    Pattern{"Timed out connecting", RpcCause::unreachable, "the connection attempt timed out"},
    Pattern{"before receiving SETTINGS frame", RpcCause::silent,
            "something accepts connections there but does not answer; it may be frozen"},
    Pattern{"keepalive watchdog", RpcCause::silent, "no answer to keepalive pings"},
    Pattern{"ping timeout", RpcCause::silent, "no answer to keepalive pings"},
    Pattern{"Connection timed out", RpcCause::silent, "the connection timed out"},
    Pattern{"Connection reset by peer", RpcCause::lost, "Connection reset by peer"},
    Pattern{"Broken pipe", RpcCause::lost, "Broken pipe"},
    Pattern{"Socket closed", RpcCause::lost, "the peer closed the connection"},
    Pattern{"socket is closed", RpcCause::lost, "the peer closed the connection"},
    Pattern{"GOAWAY", RpcCause::lost, "the peer is shutting down"},
    Pattern{"Transport closed", RpcCause::lost, "the peer closed the connection"},
    Pattern{"Endpoint closing", RpcCause::lost, "the peer closed the connection"},
    Pattern{"last error: OK", RpcCause::unreachable, other_protocol},
    Pattern{"http1.x server", RpcCause::unreachable, other_protocol},
    Pattern{"Failed parsing HTTP/2", RpcCause::unreachable, other_protocol},
    Pattern{"failed to connect", RpcCause::unreachable, nullptr},
};

// What servers of other makes say of a method that they do not have: TensorFlow's in C++, Python's,
// Go's. Ours says "this server has no method".
bool is_no_such_method(const grpc::Status& status) {
  const std::string& text = status.error_message();
  return status.error_code() == grpc::StatusCode::UNIMPLEMENTED &&
         (text.empty() || text.starts_with("Method not found") ||
          text.starts_with("unknown service") || text.starts_with("unknown method"));
}

constexpr const char* too_large = "Received message larger than max (";

constexpr std::array code_names = {
    "OK",        "CANCELLED",      "UNKNOWN",           "INVALID_ARGUMENT",   "DEADLINE_EXCEEDED",
    "NOT_FOUND", "ALREADY_EXISTS", "PERMISSION_DENIED", "RESOURCE_EXHAUSTED", "FAILED_PRECONDITION",
    "ABORTED",   "OUT_OF_RANGE",   "UNIMPLEMENTED",     "INTERNAL",           "UNAVAILABLE",
    "DATA_LOSS", "UNAUTHENTICATED"};

}  // namespace

void append(Slices slices, std::vector<grpc::Slice>& out) {
  for (ByteSlice& slice : slices) {
    if (slice.size == 0) continue;
    if (!slice.owner || slice.size < copied_below) {
      out.emplace_back(slice.data, slice.size);
      continue;
    }
    auto* owner = new std::shared_ptr<const void>(std::move(slice.owner));
    handed_over(owner);
    out.emplace_back(const_cast<void*>(slice.data), slice.size, release_owner, owner);
  }
}

grpc::ByteBuffer to_byte_buffer(Slices slices) {
  std::vector<grpc::Slice> parts;
  parts.reserve(slices.size());
  append(std::move(slices), parts);
  return grpc::ByteBuffer(parts.data(), parts.size());
}

grpc::Status check_size(const Slices& slices, uint64_t limit) {
  const uint64_t bytes = bytes_of(slices);
  if (bytes <= limit) return grpc::Status::OK;
  return {grpc::StatusCode::RESOURCE_EXHAUSTED, "a message of " + std::to_string(bytes) +
                                                    " bytes; gRPC sends at most " +
                                                    std::to_string(limit)};
}

std::vector<grpc::ByteBuffer> to_pieces(const Slices& slices) {
  std::vector<grpc::ByteBuffer> out;
  Slices piece;
  size_t size = 0;
  const auto end_piece = [&] {
    if (!piece.empty()) out.push_back(to_byte_buffer(std::move(piece)));
    piece.clear();
    size = 0;
  };
  for (const ByteSlice& slice : slices) {
    for (size_t at = 0; at < slice.size;) {
      const size_t bytes = std::min(slice.size - at, piece_bytes - size);
      piece.emplace_back(static_cast<const char*>(slice.data) + at, bytes, slice.owner);
      at += bytes;
      size += bytes;
      if (size == piece_bytes) end_piece();
    }
  }
  end_piece();
  return out;
}

Bytes to_bytes(const grpc::ByteBuffer& buffer) {
  if (!buffer.Valid()) return {};
  auto kept = std::make_shared<std::vector<grpc::Slice>>();
  if (!buffer.Dump(kept.get()).ok()) return {};
  std::vector<std::string_view> parts;
  parts.reserve(kept->size());
  for (const grpc::Slice& slice : *kept) {
    parts.emplace_back(reinterpret_cast<const char*>(slice.begin()), slice.size());
  }
  return {std::move(parts), std::move(kept)};
}

RpcStatus to_rpc_status(const grpc::Status& status, const std::string& address, size_t sent) {
  if (status.ok()) return {};
  RpcStatus out{static_cast<int>(status.error_code()), status.error_message(), RpcCause::none,
                status.error_details()};
  if (!address.empty() && is_no_such_method(status)) {
    out.cause = RpcCause::unreachable;
    out.message = address + ": a gRPC server that is not a Leat task answers there";
  } else if (out.message.empty()) {
    const auto code = static_cast<size_t>(out.code);
    out.message = code < code_names.size() ? code_names[code] : "an error without a message";
  }
  // ENHANCE_YOUR_CALM: the server's quota (rpc_server.cc) was used up before the message was whole.
  if (out.message.find("RST_STREAM with error code 11") != std::string::npos && !address.empty()) {
    const std::string what = sent > 0 ? "a message of " + std::to_string(sent) + " bytes" : "it";
    out.message = address + ": " + what + " is more than its receiver has memory for";
  }
  // "Received message larger than max (1572864123 vs. 838860800)"
  if (size_t at = out.message.find(too_large); at != std::string::npos && !address.empty()) {
    std::istringstream sizes(out.message.substr(at + std::string_view(too_large).size()));
    uint64_t size = 0, limit = 0;
    std::string vs;
    if (sizes >> size >> vs >> limit) {
      out.message = address + ": a message of " + std::to_string(size) +
                    " bytes is larger than the " + std::to_string(limit) +
                    " bytes that its receiver has memory for";
    }
  }
  if (status.error_code() != grpc::StatusCode::UNAVAILABLE) return out;
  // Closed before it greeted: so a server says that it wants TLS, or (TLS 1.3 tells only
  // afterwards) that it does not take the certificate.
  if (out.message.starts_with("failed to connect") &&
      out.message.find("Socket closed") != std::string::npos && !address.empty()) {
    out.cause = RpcCause::untrusted;
    out.message = address +
                  ": the peer closed the connection before it sent anything: it requires TLS, or "
                  "does not accept the certificate";
    return out;
  }
  for (const Pattern& pattern : patterns) {
    if (out.message.find(pattern.text) == std::string::npos) continue;
    out.cause = pattern.cause;
    if (pattern.reason == nullptr && out.cause == RpcCause::untrusted) {
      // "Tls handshake failed: SSL_ERROR_SSL: error:0A000086:SSL routines::certificate verify
      // failed"
      const size_t codes = out.message.rfind("::");
      if (out.message.find("wrong version number") != std::string::npos) {
        out.message = "no TLS connection: the server there does not speak TLS";
      } else if (codes != std::string::npos &&
                 out.message.find("SSL routines") != std::string::npos) {
        out.message = "no TLS connection: " + out.message.substr(codes + 2);
      } else {
        out.message.erase(0, out.message.find(pattern.text));
      }
    }
    if (pattern.reason != nullptr) {
      out.message = address.empty() ? pattern.reason : address + ": " + pattern.reason;
    } else if (!address.empty()) {
      out.message = address + ": " + out.message;
    }
    break;
  }
  return out;
}

grpc::Status to_grpc_status(const RpcStatus& status) {
  if (status.is_ok()) return grpc::Status::OK;
  const bool is_known =
      status.code > 0 && status.code <= static_cast<int>(grpc::StatusCode::UNAUTHENTICATED);
  return {is_known ? static_cast<grpc::StatusCode>(status.code) : grpc::StatusCode::UNKNOWN,
          status.message, status.details};
}

void set_common_arguments(const ConnectionOptions& options, const ArgumentSetter& set) {
  const bool is_limited = options.largest_message > 0 && options.largest_message < INT_MAX;
  set(GRPC_ARG_MAX_RECEIVE_MESSAGE_LENGTH,
      is_limited ? static_cast<int>(options.largest_message) : -1);
  set(GRPC_ARG_MAX_SEND_MESSAGE_LENGTH, -1);
  // The keepalive time-out also becomes TCP_USER_TIMEOUT of the socket (gRFC A18).
  set(GRPC_ARG_KEEPALIVE_TIME_MS, to_int_ms(options.keepalive_time));
  set(GRPC_ARG_KEEPALIVE_TIMEOUT_MS, to_int_ms(options.keepalive_timeout));
  set(GRPC_ARG_KEEPALIVE_PERMIT_WITHOUT_CALLS, 1);
  set(GRPC_ARG_HTTP2_MAX_PINGS_WITHOUT_DATA, 0);
  // Large frames and a window that is open from the start: no round trip before a big tensor flows.
  set(GRPC_ARG_HTTP2_BDP_PROBE, 0);
  set(GRPC_ARG_HTTP2_MAX_FRAME_SIZE, 4 << 20);
  set(GRPC_ARG_HTTP2_STREAM_LOOKAHEAD_BYTES, 64 << 20);
  set(GRPC_ARG_HTTP2_WRITE_BUFFER_SIZE, 1 << 20);
}

void keep_callback_threads() {
  struct Anchor {
    std::shared_ptr<grpc::Channel> channel;
    grpc::ClientContext context;
    grpc::ByteBuffer request, response;
  };
  // A channel without credentials only ever fails its calls, but the first call binds the callback
  // threads to it.
  static Anchor* const anchor = [] {
    auto* made =
        new Anchor{grpc::CreateCustomChannel("none", nullptr, {}), {}, to_byte_buffer({}), {}};
    grpc::GenericStub(made->channel)
        .UnaryCall(&made->context, "/none", {}, &made->request, &made->response,
                   [](const grpc::Status&) {});
    return made;
  }();
  (void)anchor;
}

}  // namespace leat::transport
