// Conversions between the transport's types and gRPC's. Internal to this folder.
#pragma once

#include <grpcpp/grpcpp.h>
#include <grpcpp/support/byte_buffer.h>

#include <chrono>
#include <string>
#include <vector>

#include "distributed/grpc/rpc.h"

// gRPC is not instrumented. So under TSan, the order of what passes through it (a callback set on
// one thread and called on another) must be annotated. The symbols exist only in a process that
// runs under TSan.
extern "C" {
void __tsan_acquire(void* address) __attribute__((weak));
void __tsan_release(void* address) __attribute__((weak));
}

namespace leat::transport {

inline void handed_over(void* what) {
  if (__tsan_release != nullptr) __tsan_release(what);
}
inline void taken_over(void* what) {
  if (__tsan_acquire != nullptr) __tsan_acquire(what);
}

// Appends one gRPC slice per slice; copies small ones and those without an owner.
void append(Slices slices, std::vector<grpc::Slice>& out);
grpc::ByteBuffer to_byte_buffer(Slices slices);
Bytes to_bytes(const grpc::ByteBuffer& buffer);
// OK, or the error that no message can be that large.
grpc::Status check_size(const Slices& slices, uint64_t limit = largest_rpc_message);
// Metadata by which a client accepts an answer of several messages. If the answer has several, the
// call fails with details that begin with this key, followed by the request for take_method, which
// returns the messages.
inline constexpr const char* pieces_key = "leat-pieces";
inline constexpr const char* take_method = "/leat.Pieces/Take";
// The same bytes as messages of a size that any receiver takes.
std::vector<grpc::ByteBuffer> to_pieces(const Slices& slices);

// The status as users should read it: gRPC's layers of text reduced to "address: reason", plus the
// cause. `address` is the dialled one; empty on a server. `sent` is the request's size in bytes.
RpcStatus to_rpc_status(const grpc::Status& status, const std::string& address, size_t sent = 0);
grpc::Status to_grpc_status(const RpcStatus& status);

// What both ends have in common: sizes, keepalive, no proxy.
struct ConnectionOptions {
  std::chrono::milliseconds keepalive_time;
  std::chrono::milliseconds keepalive_timeout;
  uint64_t largest_message;  // 0: any
};
using ArgumentSetter = std::function<void(const std::string& name, int value)>;
void set_common_arguments(const ConnectionOptions& options, const ArgumentSetter& set);

// gRPC joins its callback threads when the last channel or server of the process goes; if that
// happens on such a thread it never returns. This keeps the threads for the life of the process.
void keep_callback_threads();

}  // namespace leat::transport
