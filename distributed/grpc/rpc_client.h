// The client side: unary calls and streams to one address.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "distributed/grpc/rpc.h"
#include "distributed/grpc/tls.h"

namespace leat {

struct RpcClientOptions {
  std::chrono::milliseconds keepalive_time{4'000};  // as in RpcServerOptions
  std::chrono::milliseconds keepalive_timeout{3'000};
  std::chrono::milliseconds connect_timeout{5'000};  // of one connection attempt
  std::chrono::milliseconds first_backoff{100};      // between attempts, doubling
  std::chrono::milliseconds longest_backoff{500};
  uint64_t largest_message = 0;  // of an answer, as in RpcServerOptions
  enum class Compression : uint8_t { none, deflate, gzip } compression = Compression::none;
  // Null: plaintext. Nothing is sent to a server whose certificate `check_server` rejects.
  std::shared_ptr<const RpcTls> tls = {};
  NameCheck check_server = {};
};

// A call to an unreachable address fails at once, with the reason.
struct RpcCallOptions {
  std::optional<std::chrono::steady_clock::time_point> deadline;
  // The answer may have any size: our servers then send it as several messages.
  bool takes_pieces = false;
};

// Thread-safe. Connects on first use, and again after a loss. Ignores proxy variables. Each client
// has its own connection.
class RpcClient {
 public:
  explicit RpcClient(std::string address, RpcClientOptions options = {});
  // Cancels calls under way without waiting: callbacks may come later and must keep what they use.
  ~RpcClient();
  RpcClient(const RpcClient&) = delete;

  const std::string& address() const;

  // `done` is called once, on a transport thread (after close(), on the caller). A connection error
  // reads "10.0.0.7:2222: Connection refused". Returns a handle for cancel(), never 0.
  using CallId = uint64_t;
  using Done = std::function<void(const RpcStatus& status, Bytes response)>;
  CallId call(const std::string& method, Slices request, const RpcCallOptions& options, Done done);
  // Ends the call with CANCELLED unless it has ended.
  void cancel(CallId call);

  // Whether this outcome of a call that went another way says that its answer waits at the server
  // (RpcServer::keeper).
  static bool is_kept(const RpcStatus& status);
  // Fetches that answer.
  CallId take(const RpcStatus& status, const RpcCallOptions& options, Done done);

  // Opens a stream, which may be written to at once. If the address is unreachable, on_end has the
  // reason.
  std::shared_ptr<RpcStream> open(const std::string& method, const RpcCallOptions& options = {});

  // Like call(), but waits. There is always a deadline: 60 s if none is given.
  std::pair<RpcStatus, std::string> call_and_wait(const std::string& method, std::string request,
                                                  RpcCallOptions options = {});

  // Cancels calls under way and waits until no callback runs; false if that takes longer than
  // `limit`. Not from a callback.
  bool close(std::chrono::milliseconds limit = std::chrono::milliseconds{10'000});

 private:
  class State;
  std::shared_ptr<State> state_;
};

}  // namespace leat
