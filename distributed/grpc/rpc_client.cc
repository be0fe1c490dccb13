#include "distributed/grpc/rpc_client.h"

#include <grpcpp/generic/generic_stub.h>
#include <grpcpp/grpcpp.h>

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <map>
#include <mutex>

#include "distributed/grpc/convert.h"
#include "distributed/grpc/credentials.h"
#include "distributed/grpc/stream_core.h"

namespace leat {
namespace {

using transport::handed_over;
using transport::taken_over;

grpc::ChannelArguments to_arguments(const RpcClientOptions& options) {
  grpc::ChannelArguments arguments;
  transport::set_common_arguments(
      {options.keepalive_time, options.keepalive_timeout, options.largest_message},
      [&](const std::string& name, int value) { arguments.SetInt(name, value); });
  const auto milliseconds = [](std::chrono::milliseconds time) {
    return static_cast<int>(time.count());
  };
  arguments.SetInt(GRPC_ARG_ENABLE_HTTP_PROXY, 0);
  arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
  arguments.SetInt(GRPC_ARG_INITIAL_RECONNECT_BACKOFF_MS, milliseconds(options.first_backoff));
  arguments.SetInt(GRPC_ARG_MAX_RECONNECT_BACKOFF_MS, milliseconds(options.longest_backoff));
  arguments.SetInt(GRPC_ARG_MIN_RECONNECT_BACKOFF_MS, milliseconds(options.connect_timeout));
  arguments.SetInt(GRPC_ARG_DNS_MIN_TIME_BETWEEN_RESOLUTIONS_MS,
                   milliseconds(options.longest_backoff));
  switch (options.compression) {
    case RpcClientOptions::Compression::none:
      break;
    case RpcClientOptions::Compression::deflate:
      arguments.SetCompressionAlgorithm(GRPC_COMPRESS_DEFLATE);
      break;
    case RpcClientOptions::Compression::gzip:
      arguments.SetCompressionAlgorithm(GRPC_COMPRESS_GZIP);
      break;
  }
  return arguments;
}

void apply(const RpcCallOptions& options, grpc::ClientContext& context) {
  if (options.takes_pieces) context.AddMetadata(transport::pieces_key, "1");
  if (options.deadline) {
    const auto left = *options.deadline - std::chrono::steady_clock::now();
    const auto nanoseconds = std::max<int64_t>(0, std::chrono::nanoseconds(left).count());
    context.set_deadline(
        gpr_time_add(gpr_now(GPR_CLOCK_MONOTONIC), gpr_time_from_nanos(nanoseconds, GPR_TIMESPAN)));
  }
}

class ClientStream final : public transport::StreamCore,
                           public grpc::ClientBidiReactor<grpc::ByteBuffer, grpc::ByteBuffer> {
 public:
  using Ended = std::function<void(ClientStream*)>;

  static std::shared_ptr<ClientStream> open(grpc::GenericStub& stub, const std::string& address,
                                            const std::string& method,
                                            const RpcCallOptions& options, Ended ended) {
    auto stream = std::make_shared<ClientStream>();
    stream->self_ = stream;
    stream->address_ = address;
    stream->ended_ = std::move(ended);
    apply(options, stream->context_);
    stub.PrepareBidiStreamingCall(&stream->context_, method, {}, stream.get());
    return stream;
  }
  // Apart from open(): from here on ended() may come at any time.
  void launch() {
    AddHold();
    StartCall();
  }

 private:
  void begin_read(grpc::ByteBuffer* into) override { StartRead(into); }
  void begin_write(const grpc::ByteBuffer* from) override { StartWrite(from); }
  bool begin_half_close() override {
    StartWritesDone();
    return true;
  }
  void finish() override { RemoveHold(); }
  void try_cancel() override { context_.TryCancel(); }

  void OnReadDone(bool ok) override { read_done(ok); }
  void OnWriteDone(bool ok) override { write_done(ok); }
  void OnWritesDoneDone(bool ok) override { write_done(ok); }
  void OnDone(const grpc::Status& status) override {
    done(transport::to_rpc_status(status, address_));
    ended_(this);
    const auto self = std::move(self_);  // may be the last reference
  }

  grpc::ClientContext context_;
  std::string address_;
  Ended ended_;
  std::shared_ptr<ClientStream> self_;
};

// A call whose answer may come in several messages. Deletes itself.
class PiecesCall final : public grpc::ClientBidiReactor<grpc::ByteBuffer, grpc::ByteBuffer> {
 public:
  using Done = std::function<void(const grpc::Status& status, Bytes response)>;

  // `limit`: of the answer's bytes; 0: none. The context and the request outlive this.
  static void start(grpc::GenericStub& stub, const std::string& method,
                    grpc::ClientContext& context, const grpc::ByteBuffer& request, uint64_t limit,
                    Done done) {
    auto* call = new PiecesCall(context, limit, std::move(done));
    stub.PrepareBidiStreamingCall(&context, method, {}, call);
    call->StartWriteLast(&request, {});
    call->StartRead(&call->piece_);
    call->StartCall();
  }

 private:
  PiecesCall(grpc::ClientContext& context, uint64_t limit, Done done)
      : context_(context), limit_(limit), done_(std::move(done)) {}

  void OnReadDone(bool ok) override {
    if (!ok) return;
    size_ += piece_.Length();
    is_too_large_ = limit_ > 0 && size_ > limit_;
    if (is_too_large_) return context_.TryCancel();
    pieces_.push_back(transport::to_bytes(piece_));
    piece_.Clear();
    StartRead(&piece_);
  }
  void OnDone(const grpc::Status& status) override {
    std::vector<std::string_view> parts;
    for (const Bytes& piece : pieces_)
      parts.insert(parts.end(), piece.parts().begin(), piece.parts().end());
    auto owner = std::make_shared<std::vector<Bytes>>(std::move(pieces_));
    const grpc::Status too_large{grpc::StatusCode::RESOURCE_EXHAUSTED,
                                 "the answer is larger than the " + std::to_string(limit_) +
                                     " bytes of memory that are available"};
    done_(is_too_large_ ? too_large : status, Bytes(std::move(parts), std::move(owner)));
    delete this;
  }

  grpc::ClientContext& context_;
  const uint64_t limit_;
  const Done done_;
  grpc::ByteBuffer piece_;
  std::vector<Bytes> pieces_;
  uint64_t size_ = 0;
  bool is_too_large_ = false;
};

}  // namespace

class RpcClient::State : public std::enable_shared_from_this<RpcClient::State> {
 public:
  State(std::string address, const RpcClientOptions& options)
      : address(std::move(address)),
        largest_answer_(options.largest_message),
        channel_(
            (transport::keep_callback_threads(),
             grpc::CreateCustomChannel(
                 this->address, transport::client_credentials(options.tls, options.check_server),
                 to_arguments(options)))),
        stub_(channel_) {}

  struct Call {
    grpc::ClientContext context;
    grpc::ByteBuffer request, response;
    Done done;
    std::atomic<bool> is_cancelled{false};  // here

    void cancel() {
      is_cancelled = true;
      context.TryCancel();
    }
  };

  CallId call(const std::string& method, Slices request, const RpcCallOptions& options, Done done) {
    if (const grpc::Status size = transport::check_size(request); !size.ok()) {
      done({static_cast<int>(size.error_code()), address + ": " + size.error_message(),
            RpcCause::none},
           {});
      return 0;
    }
    auto call = std::make_shared<Call>();
    call->request = transport::to_byte_buffer(std::move(request));
    call->done = std::move(done);
    apply(options, call->context);
    CallId id;
    bool is_closed;
    {
      std::lock_guard lock(mutex_);
      id = ++last_id_;
      is_closed = is_closed_;
      if (!is_closed) calls_[id] = call;
    }
    if (is_closed) {
      call->done({static_cast<int>(grpc::StatusCode::CANCELLED), address + ": the client is closed",
                  RpcCause::none},
                 {});
      return id;
    }
    handed_over(call.get());
    stub_.UnaryCall(&call->context, method, {}, &call->request, &call->response,
                    [self = shared_from_this(), call, id, options](const grpc::Status& status) {
                      taken_over(call.get());
                      const std::string& details = status.error_details();
                      if (options.takes_pieces && details.starts_with(transport::pieces_key))
                        return self->take(std::move(call->done), id, details, options);
                      const size_t sent = call->request.Length();
                      call->request.Clear();
                      Done done = std::move(call->done);
                      done(self->outcome(status, *call, sent), transport::to_bytes(call->response));
                      done = nullptr;
                      self->ended(id);
                    });
    return id;
  }

  // The answer of a call is larger than one message, or than the way on which the call went.
  void take(Done done, CallId id, const std::string& details, const RpcCallOptions& options) {
    auto taken = std::make_shared<Call>();
    taken->request = transport::to_byte_buffer(
        to_slices(details.substr(std::string_view(transport::pieces_key).size())));
    taken->done = std::move(done);
    apply(options, taken->context);
    {
      std::lock_guard lock(mutex_);
      calls_[id] = taken;
      if (is_closed_) taken->cancel();
    }
    handed_over(taken.get());
    PiecesCall::start(
        stub_, transport::take_method, taken->context, taken->request, largest_answer_,
        [self = shared_from_this(), taken, id](const grpc::Status& status, Bytes response) {
          taken_over(taken.get());
          Done done = std::move(taken->done);
          done(self->outcome(status, *taken, 0), std::move(response));
          done = nullptr;
          self->ended(id);
        });
  }

  CallId new_id() {
    std::lock_guard lock(mutex_);
    return ++last_id_;
  }

  void cancel(CallId id) {
    std::shared_ptr<Call> call;
    {
      std::lock_guard lock(mutex_);
      auto found = calls_.find(id);
      if (found == calls_.end()) return;
      call = found->second;
    }
    call->cancel();
  }

  std::shared_ptr<RpcStream> open(const std::string& method, const RpcCallOptions& options) {
    auto stream = ClientStream::open(
        stub_, address, method, options,
        [self = shared_from_this()](ClientStream* stream) { self->ended(stream); });
    bool is_closed;
    {
      std::lock_guard lock(mutex_);
      streams_[stream.get()] = stream;
      is_closed = is_closed_;
    }
    stream->launch();
    if (is_closed) stream->cancel();
    return std::make_shared<transport::StreamHandle>(stream, address);
  }

  void cancel_all() {
    std::vector<std::shared_ptr<Call>> calls;
    std::vector<std::shared_ptr<ClientStream>> streams;
    {
      std::lock_guard lock(mutex_);
      is_closed_ = true;
      for (auto& [id, call] : calls_) calls.push_back(call);
      for (auto& [key, stream] : streams_) streams.push_back(stream);
    }
    for (auto& call : calls) call->cancel();
    for (auto& stream : streams) stream->cancel();
  }

  bool wait_for_all(std::chrono::milliseconds limit) {
    std::unique_lock lock(mutex_);
    const bool is_idle =
        changed_.wait_for(lock, limit, [&] { return calls_.empty() && streams_.empty(); });
    taken_over(this);
    return is_idle;
  }

  const std::string address;

 private:
  // A server that ends cancels the calls that it has: for the caller the server is lost.
  RpcStatus outcome(const grpc::Status& status, const Call& call, size_t sent) const {
    const bool has_text = !status.error_message().empty() && status.error_message() != "CANCELLED";
    if (status.error_code() != grpc::StatusCode::CANCELLED || has_text || call.is_cancelled)
      return transport::to_rpc_status(status, address, sent);
    return {static_cast<int>(grpc::StatusCode::UNAVAILABLE),
            address + ": the peer ended the call without an answer: it is shutting down",
            RpcCause::lost};
  }
  void ended(CallId id) {
    handed_over(this);  // to wait_for_all()
    std::lock_guard lock(mutex_);
    calls_.erase(id);
    changed_.notify_all();
  }
  void ended(ClientStream* stream) {
    handed_over(this);
    std::shared_ptr<ClientStream> kept;  // let go outside the lock
    std::lock_guard lock(mutex_);
    if (auto found = streams_.find(stream); found != streams_.end()) {
      kept = std::move(found->second);
      streams_.erase(found);
    }
    changed_.notify_all();
  }

  const uint64_t largest_answer_;
  std::shared_ptr<grpc::Channel> channel_;
  grpc::GenericStub stub_;
  std::mutex mutex_;
  std::condition_variable changed_;
  bool is_closed_ = false;
  CallId last_id_ = 0;
  std::map<CallId, std::shared_ptr<Call>> calls_;
  std::map<ClientStream*, std::shared_ptr<ClientStream>> streams_;
};

RpcClient::RpcClient(std::string address, RpcClientOptions options)
    : state_(std::make_shared<State>(std::move(address), options)) {}

RpcClient::~RpcClient() { state_->cancel_all(); }

const std::string& RpcClient::address() const { return state_->address; }

RpcClient::CallId RpcClient::call(const std::string& method, Slices request,
                                  const RpcCallOptions& options, Done done) {
  return state_->call(method, std::move(request), options, std::move(done));
}

bool RpcClient::is_kept(const RpcStatus& status) {
  return !status.is_ok() && status.details.starts_with(transport::pieces_key);
}

RpcClient::CallId RpcClient::take(const RpcStatus& status, const RpcCallOptions& options,
                                  Done done) {
  const CallId id = state_->new_id();
  state_->take(std::move(done), id, status.details, options);
  return id;
}

void RpcClient::cancel(CallId call) { state_->cancel(call); }

std::shared_ptr<RpcStream> RpcClient::open(const std::string& method,
                                           const RpcCallOptions& options) {
  return state_->open(method, options);
}

std::pair<RpcStatus, std::string> RpcClient::call_and_wait(const std::string& method,
                                                           std::string request,
                                                           RpcCallOptions options) {
  struct Answer {
    std::mutex mutex;
    std::condition_variable arrived;
    bool is_there = false;
    RpcStatus status;
    std::string response;
  };
  if (!options.deadline)
    options.deadline = std::chrono::steady_clock::now() + std::chrono::seconds(60);
  auto answer = std::make_shared<Answer>();
  call(method, to_slices(std::move(request)), options,
       [answer](const RpcStatus& status, const Bytes& response) {
         std::lock_guard lock(answer->mutex);
         answer->is_there = true;
         answer->status = status;
         answer->response = response.to_string();
         answer->arrived.notify_all();
       });
  std::unique_lock lock(answer->mutex);
  answer->arrived.wait(lock, [&] { return answer->is_there; });  // the call's deadline ends it
  return {answer->status, std::move(answer->response)};
}

bool RpcClient::close(std::chrono::milliseconds limit) {
  state_->cancel_all();
  return state_->wait_for_all(limit);
}

}  // namespace leat
