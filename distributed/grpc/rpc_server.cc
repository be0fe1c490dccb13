#include "distributed/grpc/rpc_server.h"

#include <grpcpp/generic/async_generic_service.h>
#include <grpcpp/grpcpp.h>

#include <algorithm>
#include <condition_variable>
#include <map>
#include <mutex>
#include <optional>
#include <random>
#include <stdexcept>
#include <vector>

#include "distributed/grpc/convert.h"
#include "distributed/grpc/credentials.h"
#include "distributed/grpc/handshake_watch.h"
#include "distributed/grpc/listener.h"
#include "distributed/grpc/stream_core.h"

namespace leat {
namespace {

using transport::handed_over;
using transport::taken_over;

// For a TLS handshake: a serious peer needs no longer.
constexpr int handshake_limit_ms = 5'000;

std::optional<std::chrono::steady_clock::time_point> to_deadline(gpr_timespec deadline) {
  const gpr_timespec now = gpr_now(GPR_CLOCK_MONOTONIC);
  const gpr_timespec left =
      gpr_time_sub(gpr_convert_clock_type(deadline, GPR_CLOCK_MONOTONIC), now);
  // gRPC's infinity, and TensorFlow's "no deadline": centuries, of which gRPC's header carries
  // 27,000 hours.
  constexpr int64_t year = int64_t{365} * 24 * 3600;
  if (left.tv_sec > year) return {};
  return std::chrono::steady_clock::now() + std::chrono::seconds(left.tv_sec) +
         std::chrono::nanoseconds(left.tv_nsec);
}

// What stop() ends.
struct Open {
  virtual ~Open() = default;
  virtual void end() = 0;
};

// Answers of many messages, until they are asked for.
class LargeAnswers {
 public:
  struct Answer {
    std::vector<grpc::ByteBuffer> pieces;
    std::shared_ptr<const void> kept;
  };
  // The status that says so, `why` with what to ask with.
  RpcStatus keep(const Slices& answer, std::shared_ptr<const void> kept, const grpc::Status& why) {
    std::random_device entropy;
    const std::string key = std::to_string((uint64_t{entropy()} << 32) | entropy());
    Answer large{transport::to_pieces(answer), std::move(kept)};
    std::lock_guard lock(mutex_);
    answers_[key] = {std::move(large), Clock::now()};
    return {static_cast<int>(why.error_code()), why.error_message(), RpcCause::none,
            transport::pieces_key + key};
  }
  std::optional<Answer> take(const std::string& key) {
    std::lock_guard lock(mutex_);
    const auto found = answers_.find(key);
    if (found == answers_.end()) return std::nullopt;
    Answer out = std::move(found->second.first);
    answers_.erase(found);
    return out;
  }
  void drop_old() {
    std::vector<Answer> dropped;  // outside the lock
    std::lock_guard lock(mutex_);
    for (auto at = answers_.begin(); at != answers_.end();) {
      const bool is_old = Clock::now() - at->second.second > std::chrono::seconds(10);
      if (is_old) dropped.push_back(std::move(at->second.first));
      at = is_old ? answers_.erase(at) : std::next(at);
    }
  }

 private:
  using Clock = std::chrono::steady_clock;
  std::mutex mutex_;
  std::map<std::string, std::pair<Answer, Clock::time_point>> answers_;
};

// Answers through the reactor, which lives until it has been answered and gRPC is done with it.
class GrpcCall final : public RpcCall::State, public Open {
 public:
  ~GrpcCall() override {
    answer({grpc::StatusCode::INTERNAL, "the server gave no answer"}, nullptr);
  }
  void end() override {
    cancelled();
    answer({grpc::StatusCode::UNAVAILABLE, "the server is shutting down"}, nullptr);
  }

  const std::string& method() const override { return called; }
  std::string peer() const override { return caller; }
  const Bytes& request() const override { return received; }
  std::optional<std::chrono::steady_clock::time_point> deadline() const override { return until; }
  bool takes_pieces() const override { return takes_many; }
  bool is_cancelled() const override {
    std::lock_guard lock(mutex);
    return is_given_up;
  }
  void on_cancel(std::function<void()> callback) override {
    {
      std::lock_guard lock(mutex);
      if (reactor == nullptr) return;  // answered
      if (!is_given_up) {
        handed_over(this);
        when_cancelled = std::move(callback);
        return;
      }
    }
    callback();
  }
  void reply(Slices response, std::shared_ptr<const void> kept) override;
  void fail(RpcStatus status) override { answer(transport::to_grpc_status(status), nullptr); }

  void answer(grpc::Status status, grpc::ByteBuffer* response,
              std::shared_ptr<const void> kept = nullptr);
  void answer_in_pieces(std::vector<grpc::ByteBuffer> all, std::shared_ptr<const void> kept);
  bool is_answered() {
    std::lock_guard lock(mutex);
    return reactor == nullptr;
  }
  void cancelled() {
    std::function<void()> callback;
    {
      std::lock_guard lock(mutex);
      is_given_up = true;
      callback.swap(when_cancelled);
    }
    taken_over(this);
    if (callback) callback();
  }

  std::string called, caller;
  Bytes received;
  std::optional<std::chrono::steady_clock::time_point> until;

  mutable std::mutex mutex;
  grpc::ServerGenericBidiReactor* reactor = nullptr;  // null once answered
  grpc::ByteBuffer* response = nullptr;               // the reactor's
  std::vector<grpc::ByteBuffer>* pieces =
      nullptr;  // the same: what follows the response, the last first
  bool takes_many = false;
  uint64_t largest_answer = largest_rpc_message;
  std::shared_ptr<LargeAnswers> large;
  std::shared_ptr<const void>* kept_slot = nullptr;  // the same
  bool is_given_up = false;
  std::function<void()> when_cancelled;
};

void GrpcCall::answer(grpc::Status status, grpc::ByteBuffer* bytes,
                      std::shared_ptr<const void> kept) {
  grpc::ServerGenericBidiReactor* to;
  std::function<void()> dropped;
  {
    std::lock_guard lock(mutex);
    to = reactor;
    reactor = nullptr;
    dropped.swap(when_cancelled);
    if (to != nullptr && bytes != nullptr) response->Swap(bytes);
    if (to != nullptr) *kept_slot = std::move(kept);
  }
  if (to == nullptr) return;
  handed_over(to);
  if (status.ok()) {
    to->StartWriteAndFinish(response, {}, std::move(status));
  } else {
    to->Finish(std::move(status));
  }
}

void GrpcCall::answer_in_pieces(std::vector<grpc::ByteBuffer> all,
                                std::shared_ptr<const void> kept) {
  grpc::ServerGenericBidiReactor* to;
  std::function<void()> dropped;
  {
    std::lock_guard lock(mutex);
    to = reactor;
    reactor = nullptr;
    dropped.swap(when_cancelled);
    if (to == nullptr) return;
    std::reverse(all.begin(), all.end());
    response->Swap(&all.back());
    all.pop_back();
    *pieces = std::move(all);
    *kept_slot = std::move(kept);
  }
  handed_over(to);
  to->StartWrite(response);  // and the rest as each has left
}

void GrpcCall::reply(Slices bytes, std::shared_ptr<const void> kept) {
  if (const grpc::Status size = transport::check_size(bytes, largest_answer); !size.ok()) {
    if (!takes_many) return answer(size, nullptr);
    return fail(large->keep(std::move(bytes), std::move(kept), size));
  }
  grpc::ByteBuffer buffer = transport::to_byte_buffer(std::move(bytes));
  answer(grpc::Status::OK, &buffer, std::move(kept));
}

}  // namespace

const std::string& RpcCall::method() const { return state_->method(); }
std::string RpcCall::peer() const { return state_->peer(); }
const Bytes& RpcCall::request() const { return state_->request(); }
std::optional<std::chrono::steady_clock::time_point> RpcCall::deadline() const {
  return state_->deadline();
}
bool RpcCall::takes_pieces() const { return state_->takes_pieces(); }
bool RpcCall::is_cancelled() const { return state_->is_cancelled(); }
void RpcCall::on_cancel(std::function<void()> callback) { state_->on_cancel(std::move(callback)); }
void RpcCall::reply(Slices response, std::shared_ptr<const void> kept) {
  state_->reply(std::move(response), std::move(kept));
}
void RpcCall::fail(RpcStatus status) {
  if (status.is_ok())
    status = {static_cast<int>(grpc::StatusCode::INTERNAL), "failed with an OK status", {}};
  state_->fail(std::move(status));
}

class RpcServer::State final : public grpc::CallbackGenericService {
 public:
  explicit State(const RpcServerOptions& options) : options_(options) {}

  class UnaryReactor;
  class StreamReactor;
  class Refusal;

  grpc::ServerGenericBidiReactor* CreateReactor(
      grpc::GenericCallbackServerContext* context) override;
  int start(const std::string& address, const std::string& plaintext_address);
  void stop(std::chrono::milliseconds grace);
  int plaintext_port() const { return plaintext_listener_ ? plaintext_listener_->port() : -1; }

  bool opened(const void* reactor, std::weak_ptr<Open> open) {
    std::lock_guard lock(mutex_);
    if (is_stopping_) return false;
    open_[reactor] = std::move(open);
    return true;
  }
  void closed(const void* reactor) {
    handed_over(this);  // to stop()
    std::lock_guard lock(mutex_);
    open_.erase(reactor);
    changed_.notify_all();
  }

  static void take(GrpcCall& call) {
    auto answer = call.large->take(call.received.to_string());
    if (!answer)
      return call.answer({grpc::StatusCode::NOT_FOUND, "the answer is no longer kept"}, nullptr);
    call.answer_in_pieces(std::move(answer->pieces), std::move(answer->kept));
  }

  const std::shared_ptr<LargeAnswers> large = std::make_shared<LargeAnswers>();
  using UnaryHandlers = std::map<std::string, UnaryHandler>;
  const std::shared_ptr<UnaryHandlers> unary = std::make_shared<UnaryHandlers>();
  std::map<std::string, StreamHandler> streams;

  // The handler of the longest prefix; end() if there is none.
  template <class Handlers>
  static auto find(const Handlers& handlers, const std::string& method) {
    auto best = handlers.end();
    for (auto at = handlers.begin(); at != handlers.end(); ++at) {
      if (method.starts_with(at->first) &&
          (best == handlers.end() || at->first.size() > best->first.size()))
        best = at;
    }
    return best;
  }

 private:
  const UnaryHandler no_handler;  // of take_method, which State answers itself
  using Acceptor = grpc::experimental::ExternalConnectionAcceptor;
  void refused(const std::string& peer, const std::string& why) {
    if (options_.on_refused) options_.on_refused(peer, why);
  }

  RpcServerOptions options_;
  std::unique_ptr<grpc::Server> server_;
  std::unique_ptr<transport::HandshakeWatch> watch_;
  std::unique_ptr<Acceptor> acceptor_, plaintext_acceptor_;
  std::unique_ptr<transport::Listener> listener_, plaintext_listener_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::map<const void*, std::weak_ptr<Open>> open_;  // by reactor
  bool is_stopping_ = false;
};

class RpcServer::State::UnaryReactor final : public grpc::ServerGenericBidiReactor {
 public:
  UnaryReactor(State& server, const UnaryHandler& handler,
               grpc::GenericCallbackServerContext* context)
      : server_(server), handler_(handler), call_(std::make_shared<GrpcCall>()), weak_(call_) {
    call_->called = context->method();
    call_->caller = context->peer();
    call_->until = to_deadline(context->raw_deadline());
    call_->reactor = this;
    call_->response = &response_;
    call_->pieces = &pieces_;
    call_->takes_many = context->client_metadata().contains(transport::pieces_key);
    call_->large = server_.large;
    call_->largest_answer = server_.options_.largest_answer;
    call_->kept_slot = &kept_;
    if (!server_.opened(this, weak_)) call_->end();
    StartRead(&request_);
  }

 private:
  void OnReadDone(bool ok) override {
    const auto call = std::move(call_);
    if (!ok) {
      call->answer({grpc::StatusCode::INVALID_ARGUMENT, "the call had no request"}, nullptr);
      return;
    }
    if (call->is_answered()) return;
    call->received = transport::to_bytes(request_);
    request_.Clear();
    taken_over(&server_);
    if (call->called == transport::take_method) return take(*call);
    try {
      handler_(RpcCall(call));
    } catch (const std::exception& error) {
      call->answer({grpc::StatusCode::INTERNAL, error.what()}, nullptr);
    }
  }
  void OnWriteDone(bool ok) override {
    if (!ok) return Finish({grpc::StatusCode::CANCELLED, "the client has gone"});
    if (pieces_.empty()) return Finish(grpc::Status::OK);
    response_.Swap(&pieces_.back());
    pieces_.pop_back();
    StartWrite(&response_);
  }
  void OnCancel() override {
    if (auto call = weak_.lock()) call->cancelled();
  }
  void OnDone() override {
    taken_over(static_cast<grpc::ServerGenericBidiReactor*>(this));
    kept_.reset();
    server_.closed(this);
    delete this;
  }

  State& server_;
  const UnaryHandler& handler_;
  std::shared_ptr<GrpcCall> call_;  // until the handler has it
  std::weak_ptr<GrpcCall> weak_;
  grpc::ByteBuffer request_, response_;
  std::vector<grpc::ByteBuffer> pieces_;  // of the answer, the last one first
  std::shared_ptr<const void> kept_;      // until the answer has left
};

class RpcServer::State::StreamReactor final : public transport::StreamCore,
                                              public grpc::ServerGenericBidiReactor,
                                              public Open {
 public:
  explicit StreamReactor(State& server) : server_(server) {}

  void open(const StreamHandler& handler, grpc::GenericCallbackServerContext* context,
            std::shared_ptr<StreamReactor> self) {
    self_ = self;
    context_ = context;
    // The client learns at once that the method exists.
    StartSendInitialMetadata();
    taken_over(&server_);
    auto handle = std::make_shared<transport::StreamHandle>(std::move(self), context->peer(),
                                                            transport::peer_of(*context).names);
    try {
      handler(handle);
    } catch (const std::exception&) {
      handle->cancel();
    }
  }
  void end() override { cancel(); }

 private:
  void begin_read(grpc::ByteBuffer* into) override { StartRead(into); }
  void begin_write(const grpc::ByteBuffer* from) override { StartWrite(from); }
  bool begin_half_close() override { return false; }
  void finish() override { Finish(grpc::Status::OK); }
  void try_cancel() override { context_->TryCancel(); }

  void OnReadDone(bool ok) override { read_done(ok); }
  void OnWriteDone(bool ok) override { write_done(ok); }
  void OnCancel() override { is_cancelled_ = true; }
  void OnDone() override {
    // The context lives until this returns; done() makes cancel() leave it alone.
    RpcStatus status;
    if (is_cancelled_) {
      status = {static_cast<int>(grpc::StatusCode::UNAVAILABLE),
                "the connection was lost or the peer cancelled", RpcCause::lost};
    }
    done(status);
    server_.closed(this);
    const auto self = std::move(self_);  // may be the last reference
  }

  State& server_;
  grpc::GenericCallbackServerContext* context_ = nullptr;
  std::atomic<bool> is_cancelled_{false};
  std::shared_ptr<StreamReactor> self_;
};

class RpcServer::State::Refusal final : public grpc::ServerGenericBidiReactor {
 public:
  explicit Refusal(grpc::Status status) { Finish(std::move(status)); }
  void OnDone() override { delete this; }
};

grpc::ServerGenericBidiReactor* RpcServer::State::CreateReactor(
    grpc::GenericCallbackServerContext* context) {
  const std::string& method = context->method();
  if (watch_ || options_.authorize) {
    const RpcPeer peer = transport::peer_of(*context);
    if (watch_) watch_->passed(peer.address);
    const RpcStatus status = options_.authorize ? options_.authorize(method, peer) : RpcStatus();
    if (!status.is_ok()) {
      refused(peer.address, status.message);
      return new Refusal(transport::to_grpc_status(status));
    }
  }
  if (method == transport::take_method) return new UnaryReactor(*this, no_handler, context);
  const auto one = find(*unary, method);
  const auto stream = find(streams, method);
  if (one == unary->end() && stream == streams.end()) {
    return new Refusal({grpc::StatusCode::UNIMPLEMENTED, "this server has no method " + method});
  }
  if (stream == streams.end() ||
      (one != unary->end() && one->first.size() > stream->first.size())) {
    return new UnaryReactor(*this, one->second, context);
  }
  auto reactor = std::make_shared<StreamReactor>(*this);
  if (!opened(reactor.get(), reactor)) {
    return new Refusal({grpc::StatusCode::UNAVAILABLE, "the server is shutting down"});
  }
  auto* raw = reactor.get();
  raw->open(stream->second, context, std::move(reactor));
  return raw;
}

int RpcServer::State::start(const std::string& address, const std::string& plaintext_address) {
  transport::keep_callback_threads();
  const auto listen = [](const std::string& where) {
    try {
      return std::make_unique<transport::Listener>(where);
    } catch (const std::runtime_error& error) {
      throw std::runtime_error("cannot listen on " + where + ": " + error.what());
    }
  };
  std::unique_ptr<transport::Listener> listener = listen(address), plaintext;
  if (!plaintext_address.empty()) plaintext = listen(plaintext_address);
  grpc::ServerBuilder builder;
  transport::set_common_arguments(
      {options_.keepalive_time, options_.keepalive_timeout, options_.largest_message},
      [&](const std::string& name, int value) { builder.AddChannelArgument(name, value); });
  // gRPC (1.51) looks at a message's length when it has all of it: the quota ends one before that.
  if (options_.largest_message > 0) {
    grpc::ResourceQuota quota("leat");
    builder.SetResourceQuota(quota.Resize(options_.largest_message));
  }
  builder.AddChannelArgument(GRPC_ARG_HTTP2_MIN_RECV_PING_INTERVAL_WITHOUT_DATA_MS, 50);
  builder.AddChannelArgument(GRPC_ARG_HTTP2_MAX_PING_STRIKES, 0);
  using grpc::ServerBuilder;
  constexpr auto from_fd = ServerBuilder::experimental_type::ExternalConnectionType::FROM_FD;
  if (options_.tls != nullptr)
    builder.AddChannelArgument(GRPC_ARG_SERVER_HANDSHAKE_TIMEOUT_MS, handshake_limit_ms);
  std::shared_ptr<grpc::ServerCredentials> credentials;
  try {
    credentials = transport::server_credentials(options_.tls);
  } catch (const std::runtime_error& error) {
    throw std::runtime_error("cannot serve on " + address + " with TLS: " + error.what());
  }
  acceptor_ = builder.experimental().AddExternalConnectionAcceptor(from_fd, credentials);
  if (plaintext != nullptr) {
    plaintext_acceptor_ = builder.experimental().AddExternalConnectionAcceptor(
        from_fd, grpc::InsecureServerCredentials());
  }
  builder.RegisterCallbackGenericService(this);
  handed_over(this);
  server_ = builder.BuildAndStart();
  if (!server_) throw std::runtime_error("cannot serve on " + address + ": gRPC does not start");
  listener_ = std::move(listener);
  plaintext_listener_ = std::move(plaintext);
  const auto pass_on = [](Acceptor& acceptor, int socket, int connection) {
    Acceptor::NewConnectionParameters parameters;
    parameters.listener_fd = socket;
    parameters.fd = connection;
    acceptor.HandleNewConnection(&parameters);
  };
  try {
    if (options_.tls != nullptr) {
      watch_ = std::make_unique<transport::HandshakeWatch>(
          [this](const std::string& peer, const std::string& why) {
            refused(peer, why.empty() ? "the connection ended before its first call"
                                      : "the TLS handshake failed: " + why);
          });
    }
    listener_->start([this, pass_on](int socket, int connection) {
      if (watch_) watch_->accepted(connection);
      pass_on(*acceptor_, socket, connection);
    });
    if (plaintext_listener_) {
      plaintext_listener_->start([this, pass_on](int socket, int connection) {
        pass_on(*plaintext_acceptor_, socket, connection);
      });
    }
  } catch (const std::system_error& error) {  // of std::thread, which says no more than that
    throw std::runtime_error("cannot listen on " + address + ": cannot start a thread: " +
                             error.what() + "; see ulimit -v and ulimit -u");
  }
  return listener_->port();
}

void RpcServer::State::stop(std::chrono::milliseconds grace) {
  if (!server_) return;
  {
    std::unique_lock lock(mutex_);
    is_stopping_ = true;
    changed_.wait_for(lock, grace, [&] { return open_.empty(); });
  }
  std::vector<std::weak_ptr<Open>> rest;
  {
    std::lock_guard lock(mutex_);
    for (auto& [reactor, open] : open_) rest.push_back(open);
  }
  for (auto& weak : rest) {
    if (auto open = weak.lock()) open->end();
  }
  listener_.reset();
  plaintext_listener_.reset();
  server_->Shutdown(std::chrono::system_clock::now());
  server_.reset();
  watch_.reset();
  taken_over(this);
}

RpcServer::RpcServer(RpcServerOptions options) : state_(std::make_unique<State>(options)) {}
RpcServer::~RpcServer() { stop(); }
void RpcServer::handle(std::string prefix, UnaryHandler handler) {
  state_->unary->insert_or_assign(std::move(prefix), std::move(handler));
}
void RpcServer::accept(std::string prefix, StreamHandler handler) {
  state_->streams.insert_or_assign(std::move(prefix), std::move(handler));
}
int RpcServer::start(const std::string& address, const std::string& plaintext_address) {
  return state_->start(address, plaintext_address);
}
int RpcServer::plaintext_port() const { return state_->plaintext_port(); }
void RpcServer::stop(std::chrono::milliseconds grace) { state_->stop(grace); }

std::function<void(RpcCall)> RpcServer::dispatcher() const {
  return [handlers = state_->unary](RpcCall call) {
    const auto found = State::find(*handlers, call.method());
    if (found == handlers->end()) {
      return call.fail({static_cast<int>(grpc::StatusCode::UNIMPLEMENTED),
                        "this server has no method " + call.method()});
    }
    try {
      found->second(call);
    } catch (const std::exception& error) {
      call.fail({static_cast<int>(grpc::StatusCode::INTERNAL), error.what()});
    }
  };
}

std::function<RpcStatus(Slices, std::shared_ptr<const void>)> RpcServer::keeper() const {
  return [large = state_->large](const Slices& answer, std::shared_ptr<const void> kept) {
    return large->keep(answer, std::move(kept),
                       {grpc::StatusCode::RESOURCE_EXHAUSTED, "the answer waits to be taken"});
  };
}

void RpcServer::drop_unasked() { state_->large->drop_old(); }

}  // namespace leat
