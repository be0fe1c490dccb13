#include "distributed/wire/channel_calls.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "core/error.h"

namespace leat {
namespace {

using Clock = std::chrono::steady_clock;

RpcStatus rpc_error(Code code, std::string message) {
  return {static_cast<int>(code), std::move(message)};
}

// The first bytes as text, and the rest.
std::string take_text(Bytes& bytes, uint64_t size) {
  std::string text;
  text.reserve(size);
  std::vector<std::string_view> rest;
  for (std::string_view part : bytes.parts()) {
    const size_t here = std::min<size_t>(part.size(), size - text.size());
    text.append(part.substr(0, here));
    if (here < part.size()) rest.push_back(part.substr(here));
  }
  bytes = bytes.with_parts(std::move(rest));
  return text;
}

}  // namespace

// A call of the peer.
class ChannelCalls::Incoming final : public RpcCall::State {
 public:
  Incoming(std::shared_ptr<ChannelCalls> calls, const FrameHeader& header, std::string method,
           Bytes request)
      : calls_(std::move(calls)),
        number_(header.step),
        method_(std::move(method)),
        request_(std::move(request)),
        takes_pieces_((header.flags & FrameHeader::takes_pieces) != 0) {
    if (header.edge > 0) deadline_ = Clock::now() + std::chrono::nanoseconds(header.edge);
  }
  ~Incoming() override { fail(rpc_error(Code::internal, "the server gave no answer")); }

  const std::string& method() const override { return method_; }
  std::string peer() const override { return calls_->peer_; }
  const Bytes& request() const override { return request_; }
  std::optional<Clock::time_point> deadline() const override { return deadline_; }
  bool takes_pieces() const override { return takes_pieces_; }
  bool is_cancelled() const override {
    std::lock_guard lock(mutex_);
    return is_cancelled_;
  }
  void on_cancel(std::function<void()> callback) override {
    {
      std::lock_guard lock(mutex_);
      if (is_answered_) return;
      if (!is_cancelled_) {
        on_cancel_ = std::move(callback);
        return;
      }
    }
    callback();
  }
  void cancelled() {
    std::function<void()> callback;
    {
      std::lock_guard lock(mutex_);
      is_cancelled_ = true;
      callback.swap(on_cancel_);
    }
    if (callback) callback();
  }

  void reply(Slices response, std::shared_ptr<const void> kept) override {
    if (const uint64_t size = bytes_of(response); size > largest) {
      if (!takes_pieces_ && size > largest_rpc_message) {
        return fail(rpc_error(Code::resource_exhausted,
                              concat("an answer of ", size, " bytes; a message holds at most ",
                                     largest_rpc_message)));
      }
      if (!calls_->handlers_.keep) {
        return fail(
            rpc_error(Code::resource_exhausted,
                      concat("an answer of ", size, " bytes; a frame holds at most ", largest)));
      }
      if (!is_first_answer()) return;
      return send_status(calls_->handlers_.keep(std::move(response), std::move(kept)));
    }
    if (!is_first_answer()) return;
    calls_->send_({.kind = FrameKind::answer, .step = number_}, response);
  }
  void fail(RpcStatus status) override {
    if (is_first_answer()) send_status(status);
  }

 private:
  bool is_first_answer() {
    std::function<void()> dropped;  // goes after the locks
    {
      std::lock_guard lock(mutex_);
      if (std::exchange(is_answered_, true)) return false;
      dropped.swap(on_cancel_);
    }
    std::lock_guard lock(calls_->mutex_);
    calls_->running_.erase(number_);
    return true;
  }

  void send_status(const RpcStatus& status) {
    const std::string message = status.message.substr(0, largest / 2);
    const std::string details = status.details.size() <= largest / 2 ? status.details : "";
    Slices text = to_slices(message + details);
    calls_->send_({.kind = FrameKind::answer,
                   .step = number_,
                   .edge = status.code,
                   .total = message.size(),
                   .offset = details.size()},
                  text);
  }

  const std::shared_ptr<ChannelCalls> calls_;
  const int64_t number_;
  const std::string method_;
  const Bytes request_;
  const bool takes_pieces_;
  std::optional<Clock::time_point> deadline_;
  mutable std::mutex mutex_;
  bool is_answered_ = false;
  bool is_cancelled_ = false;
  std::function<void()> on_cancel_;
};

ChannelCalls::ChannelCalls(CallHandlers handlers, std::string peer, Send send)
    : handlers_(std::move(handlers)), peer_(std::move(peer)), send_(std::move(send)) {}

bool ChannelCalls::call(const std::string& method, const Slices& request,
                        const RpcCallOptions& options, Done done) {
  if (method.size() + bytes_of(request) > largest) return false;
  FrameHeader header{.kind = FrameKind::call,
                     .flags = options.takes_pieces ? FrameHeader::takes_pieces : uint8_t{0},
                     .total = method.size()};
  if (options.deadline) {
    header.edge = std::chrono::nanoseconds(*options.deadline - Clock::now()).count();
    if (header.edge <= 0) return false;  // gRPC says so
  }
  {
    std::lock_guard lock(mutex_);
    if (is_ended_) return false;
    header.step = ++last_;
    waiting_.emplace(header.step, std::move(done));
  }
  Slices payload;
  payload.reserve(request.size() + 1);
  payload.emplace_back(method.data(), method.size(), nullptr);
  payload.insert(payload.end(), request.begin(), request.end());
  if (send_(header, payload)) return true;
  std::lock_guard lock(mutex_);
  return waiting_.erase(header.step) == 0;  // if it has ended meanwhile, `done` has been called
}

void ChannelCalls::came(const FrameHeader& header, Bytes payload) {
  if (header.kind == FrameKind::call) {
    called(header, payload);
  } else {
    answered(header, payload);
  }
}

void ChannelCalls::called(const FrameHeader& header, const Bytes& payload) {
  if (header.total > payload.size()) fail(Code::data_loss, "a call without a whole method name");
  Bytes request = payload;
  std::string method = take_text(request, header.total);
  {
    std::lock_guard lock(mutex_);
    if (running_.contains(header.step)) fail(Code::data_loss, "call ", header.step, " came twice");
  }
  const auto call =
      std::make_shared<Incoming>(shared_from_this(), header, std::move(method), std::move(request));
  {
    std::lock_guard lock(mutex_);
    running_.emplace(header.step, call);
  }
  if (!handlers_.handle) {
    return call->fail(rpc_error(Code::unimplemented, "there is no method " + call->method()));
  }
  try {
    handlers_.handle(RpcCall(call));
  } catch (const std::exception& error) {
    call->fail(rpc_error(Code::internal, error.what()));
  }
}

void ChannelCalls::answered(const FrameHeader& header, const Bytes& payload) {
  if (header.total > payload.size() || header.offset > payload.size() - header.total)
    fail(Code::data_loss, "an answer whose message or details end after its end");
  if (header.edge < 0 || header.edge > static_cast<int64_t>(Code::unauthenticated))
    fail(Code::data_loss, "an answer with the code ", header.edge);
  Done done;
  {
    std::lock_guard lock(mutex_);
    const auto found = waiting_.find(header.step);
    if (found == waiting_.end())
      fail(Code::data_loss, "an answer to call ", header.step, ", which is not under way");
    done = std::move(found->second);
    waiting_.erase(found);
  }
  Bytes answer = payload;
  RpcStatus status{static_cast<int>(header.edge), take_text(answer, header.total)};
  status.details = take_text(answer, header.offset);
  done(status, std::move(answer));
}

void ChannelCalls::ended(const RpcStatus& status) {
  std::unordered_map<int64_t, Done> waiting;
  std::unordered_map<int64_t, std::weak_ptr<Incoming>> running;
  {
    std::lock_guard lock(mutex_);
    is_ended_ = true;
    waiting.swap(waiting_);
    running.swap(running_);
  }
  for (const auto& [number, weak] : running) {
    if (const auto call = weak.lock()) call->cancelled();
  }
  for (const auto& [number, done] : waiting) done(status, {});
}

}  // namespace leat
