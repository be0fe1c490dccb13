// The server side: unary methods and streams by full method name, on one port. A call that waits
// holds no thread.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "distributed/grpc/rpc.h"
#include "distributed/grpc/tls.h"

namespace leat {

struct RpcServerOptions {
  // Of both ends: a ping after so long without a byte, and how long its answer may take. Together
  // less than ten seconds: that is how soon a frozen peer is to be known.
  std::chrono::milliseconds keepalive_time{4'000};
  std::chrono::milliseconds keepalive_timeout{3'000};
  // Of a request, in bytes, and of all that are being collected: what is more is refused
  // (RESOURCE_EXHAUSTED). 0: any.
  uint64_t largest_message = 0;
  // Of one message of an answer; for tests, which have no 4 GiB.
  uint64_t largest_answer = largest_rpc_message;
  // Null: plaintext. Else a peer without a certificate that `tls->ca` has signed gets no further
  // than the handshake.
  std::shared_ptr<const RpcTls> tls = {};
  // May the peer call the method? Asked before a byte of the call is read; what it answers but OK
  // is the call's status.
  std::function<RpcStatus(const std::string& method, const RpcPeer& peer)> authorize = {};
  // A peer was refused: by authorize(), or in the handshake. On any thread.
  std::function<void(const std::string& peer, const std::string& why)> on_refused = {};
};

// One unary call. A handle: copies are the same call. It must be answered, from any thread, also
// after it was cancelled; the first answer counts. If the last handle goes without an answer, the
// client gets INTERNAL.
class RpcCall {
 public:
  const std::string& method() const;  // "/tensorflow.MasterService/RunStep"
  std::string peer() const;           // "ipv4:127.0.0.1:43210"
  const Bytes& request() const;
  // When the client gives up. None if it set none, or one that is more than a year away.
  std::optional<std::chrono::steady_clock::time_point> deadline() const;

  // The answer may be larger than largest_rpc_message.
  bool takes_pieces() const;

  // The client has gone, cancelled, or passed its deadline.
  bool is_cancelled() const;
  // Called once if that happens, on a transport thread; at once if it has happened. Not after the
  // answer.
  void on_cancel(std::function<void()> callback);

  void reply(Slices response) { reply(std::move(response), nullptr); }
  void reply(std::string response) { reply(to_slices(std::move(response))); }
  // `kept` is let go, perhaps on a transport thread, when the reply has left this process, or
  // cannot any more.
  void reply(Slices response, std::shared_ptr<const void> kept);
  void fail(RpcStatus status);

  class State;
  explicit RpcCall(std::shared_ptr<State> state) : state_(std::move(state)) {}

 private:
  std::shared_ptr<State> state_;
};

// Thread-safe but for the registration, which ends with start(). Errors are std::runtime_error.
class RpcServer {
 public:
  using UnaryHandler = std::function<void(RpcCall)>;
  using StreamHandler = std::function<void(std::shared_ptr<RpcStream>)>;

  explicit RpcServer(RpcServerOptions options = {});
  ~RpcServer();  // stop(), with no grace
  RpcServer(const RpcServer&) = delete;

  // For all methods whose name begins with `prefix`; the longest one that fits is called. Anything
  // else is answered UNIMPLEMENTED. Handlers run on transport threads and must not block; one that
  // throws fails the call with INTERNAL, or cancels the stream.
  void handle(std::string prefix, UnaryHandler handler);
  void accept(std::string prefix, StreamHandler handler);

  // Answers that are larger than one message wait here for clients that take them in pieces: those
  // that nobody has asked for in 10 s go.
  void drop_unasked();

  // Listens on "host:port" (port 0: any free one) and returns the port. The port is never shared:
  // one that is taken is an error with the reason.
  // `plaintext_address` is listened on as well, without TLS; "": no.
  int start(const std::string& address, const std::string& plaintext_address = "");

  int plaintext_port() const;  // -1: none

  // Refuses new calls, gives those under way `grace`, then cancels them and answers for them
  // (UNAVAILABLE). When it returns, no handler or callback of this server runs. Not from a handler.
  // Safe to call twice.
  void stop(std::chrono::milliseconds grace = std::chrono::milliseconds{0});

 private:
  class State;
  std::unique_ptr<State> state_;
};

}  // namespace leat
