// The server side: unary methods and streams by full method name, on one port. A waiting call holds
// no thread.
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
  // At both ends: a ping after this long without a byte, and the time limit of its answer. Together
  // less than ten seconds: within that time, a frozen peer is detected.
  std::chrono::milliseconds keepalive_time{4'000};
  std::chrono::milliseconds keepalive_timeout{3'000};
  // In bytes: the limit of one request, and of all requests being received. Anything beyond is
  // refused (RESOURCE_EXHAUSTED). 0: any.
  uint64_t largest_message = 0;
  // The limit of one message of an answer; for tests, which do not have 4 GiB.
  uint64_t largest_answer = largest_rpc_message;
  // Null: plaintext. Otherwise a peer without a certificate signed by `tls->ca` gets no further
  // than the handshake.
  std::shared_ptr<const RpcTls> tls = {};
  // May the peer call the method? Called before a byte of the call is read; a result other than OK
  // is the call's status.
  std::function<RpcStatus(const std::string& method, const RpcPeer& peer)> authorize = {};
  // Called when a peer was refused: by authorize(), or in the handshake. On any thread.
  std::function<void(const std::string& peer, const std::string& why)> on_refused = {};
};

// One unary call. A handle: copies are the same call. Answer it from any thread, even after it was
// cancelled; the first answer counts. If the last handle goes without an answer, the client gets
// INTERNAL.
class RpcCall {
 public:
  const std::string& method() const;  // "/tensorflow.MasterService/RunStep"
  std::string peer() const;           // "ipv4:127.0.0.1:43210"
  const Bytes& request() const;
  // When the client gives up. Nullopt if it set no deadline, or one more than a year away.
  std::optional<std::chrono::steady_clock::time_point> deadline() const;

  // The answer may be larger than largest_rpc_message.
  bool takes_pieces() const;

  // The client has disconnected, cancelled, or passed its deadline.
  bool is_cancelled() const;
  // Called once if that happens, on a transport thread; at once if it has already happened. Not
  // after the answer.
  void on_cancel(std::function<void()> callback);

  void reply(Slices response) { reply(std::move(response), nullptr); }
  void reply(std::string response) { reply(to_slices(std::move(response))); }
  // `kept` is released, perhaps on a transport thread, when the reply has left this process, or no
  // longer can.
  void reply(Slices response, std::shared_ptr<const void> kept);
  void fail(RpcStatus status);

  // What a handle stands for: a call of gRPC's (rpc_server.cc), or one that came over a channel
  // between two processes (wire/channel_calls.h).
  class State {
   public:
    virtual ~State() = default;
    virtual const std::string& method() const = 0;
    virtual std::string peer() const = 0;
    virtual const Bytes& request() const = 0;
    virtual std::optional<std::chrono::steady_clock::time_point> deadline() const = 0;
    virtual bool takes_pieces() const = 0;
    virtual bool is_cancelled() const = 0;
    virtual void on_cancel(std::function<void()> callback) = 0;
    virtual void reply(Slices response, std::shared_ptr<const void> kept) = 0;
    virtual void fail(RpcStatus status) = 0;  // not OK
  };
  explicit RpcCall(std::shared_ptr<State> state) : state_(std::move(state)) {}

 private:
  std::shared_ptr<State> state_;
};

// Thread-safe except for registration, which ends with start(). Errors are std::runtime_error.
class RpcServer {
 public:
  using UnaryHandler = std::function<void(RpcCall)>;
  using StreamHandler = std::function<void(std::shared_ptr<RpcStream>)>;

  explicit RpcServer(RpcServerOptions options = {});
  ~RpcServer();  // stop(), with no grace
  RpcServer(const RpcServer&) = delete;

  // Handles all methods whose name begins with `prefix`; the longest match wins. Other methods are
  // answered UNIMPLEMENTED. Handlers run on transport threads and must not block; an exception
  // fails the call with INTERNAL, or cancels the stream.
  void handle(std::string prefix, UnaryHandler handler);
  void accept(std::string prefix, StreamHandler handler);

  // Handles a call that came another way than over gRPC, like one that did. It is not authorised
  // again. May outlive the server.
  std::function<void(RpcCall)> dispatcher() const;
  // Keeps an answer that is too large for the way on which its call came, and returns what to
  // answer instead: the client fetches it over gRPC (RpcClient::take). May outlive the server.
  std::function<RpcStatus(Slices answer, std::shared_ptr<const void> kept)> keeper() const;

  // Answers larger than one message wait here for clients that take them in pieces. Drops those
  // that nobody has asked for in 10 s.
  void drop_unasked();

  // Listens on "host:port" (port 0: any free one) and returns the port. The port is exclusive: a
  // taken one is an error with the reason. Also listens on `plaintext_address`, without TLS; "":
  // none.
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
