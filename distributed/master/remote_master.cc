#include "distributed/master/remote_master.h"

#include <algorithm>
#include <future>
#include <iostream>
#include <map>
#include <mutex>
#include <optional>
#include <thread>

#include "core/memory/memory_limit.h"
#include "distributed/cluster/cluster_spec.h"
#include "distributed/cluster/identity.h"
#include "distributed/cluster/tls.h"
#include "distributed/grpc/rpc_client.h"
#include "distributed/master/master_link.h"
#include "distributed/proto/master.pb.h"
#include "distributed/random_id.h"
#include "distributed/rpc_status.h"
#include "distributed/wire/channel.h"
#include "distributed/wire/large_answer.h"
#include "distributed/wire/master_codec.h"
#include "distributed/wire/tensor_stream.h"

namespace leat {
namespace {

using Clock = std::chrono::steady_clock;
using std::chrono::milliseconds;

constexpr milliseconds start_limit = std::chrono::seconds(60);  // for the task to come up
// Reports the task that it waits for this long after the start, then at this interval.
constexpr milliseconds first_note = std::chrono::seconds(2),
                       note_interval = std::chrono::seconds(10);
constexpr milliseconds close_limit = std::chrono::seconds(15);
constexpr milliseconds untrusted_limit = milliseconds(500),  // it may be one that is just ending
    repeat_limit = std::chrono::seconds(1);                  // for a broken connection to come back
constexpr milliseconds pause = milliseconds(100);
constexpr milliseconds probe_limit = std::chrono::seconds(2);
// The master answers a little before the step's deadline; the call waits a little longer than that.
constexpr milliseconds deadline_margin = std::chrono::seconds(2);
// How much later than the deadline its passing may be told.
constexpr milliseconds end_margin = milliseconds(100);

// Unary calls to one master.
class MasterCalls {
 public:
  explicit MasterCalls(const std::string& target)
      : target_(target),
        client_(std::make_shared<RpcClient>(HostPort::of_target(target).to_string(),
                                            RpcClientOptions{.largest_message = largest_message(),
                                                             .tls = client_tls(),
                                                             .check_server = is_any_task()})),
        link_(*client_) {}

  enum class Repeat : uint8_t {
    never,
    if_refused,  // nobody listens yet: nothing has happened
    if_lost,     // also when the connection broke: the request has an id
  };
  // A call under way.
  struct Pending {
    const char* method = nullptr;
    Slices request;
    Clock::time_point deadline;
    Repeat repeat = Repeat::never;
    milliseconds repeat_for{0};
    bool takes_pieces = false;
    bool is_of_step = false;
    std::future<std::pair<RpcStatus, Bytes>> answer;
  };
  Pending start(const char* method, Slices request, Clock::time_point deadline, Repeat repeat,
                milliseconds repeat_for) {
    return start({method, std::move(request), deadline, repeat, repeat_for});
  }
  // It goes over the master's channel if it can.
  Pending start_step(Slices request, Clock::time_point deadline) {
    return start({"RunStep", std::move(request), deadline, Repeat::if_lost, repeat_limit,
                  /*takes_pieces=*/true, /*is_of_step=*/true});
  }

  // Waits for the reply; throws what the master answers, or UNAVAILABLE with the target and the
  // reason.
  Bytes finish(Pending pending) {
    std::optional<Clock::time_point> last_repeat;
    std::optional<Clock::time_point> untrusted_since;
    Clock::time_point next_note = Clock::now() + first_note;
    while (true) {
      auto [status, reply] = answer_to(pending);
      if (status.is_ok()) return reply;
      const bool is_lost = status.cause == RpcCause::lost || status.cause == RpcCause::silent;
      const bool is_untrusted = status.cause == RpcCause::untrusted;
      const bool is_refused = status.cause != RpcCause::none && !is_lost;
      const bool may_repeat = (is_refused && pending.repeat != Repeat::never) ||
                              (is_lost && pending.repeat == Repeat::if_lost);
      if (!last_repeat) last_repeat = std::min(pending.deadline, Clock::now() + pending.repeat_for);
      if (!is_untrusted) untrusted_since.reset();
      if (is_untrusted && !untrusted_since) untrusted_since = Clock::now();
      const bool is_refused_for_good =
          untrusted_since && Clock::now() - *untrusted_since >= untrusted_limit;
      if (!may_repeat || is_refused_for_good || Clock::now() + pause >= *last_repeat ||
          (status.cause == RpcCause::silent && !answers())) {
        throw_failure(pending.method, status);
      }
      if (Clock::now() >= next_note) {
        std::cerr << "leat: waiting for " << name() << ": " << status.message << std::endl;
        next_note += note_interval;
      }
      std::this_thread::sleep_for(pause);
      send(pending);
    }
  }

  // For the first step.
  void open_link() { link_.channel(); }

  template <class Response, class Request>
  Response call(const char* method, const Request& request, Clock::time_point deadline,
                Repeat repeat, milliseconds repeat_for) {
    if (request.ByteSizeLong() > INT32_MAX) {
      fail(Code::resource_exhausted, "the request ", method, " would have ", request.ByteSizeLong(),
           " bytes; a message of this protocol holds at most ", INT32_MAX,
           ": make large constants variables and feed them");
    }
    MessageWriter writer(concat("the request ", method));
    writer.append(request.SerializeAsString());
    return parse<Response>(
        method, finish(start(method, std::move(writer).finish(), deadline, repeat, repeat_for))
                    .to_string());
  }

  void set_task(const std::string& task) {
    std::lock_guard lock(mutex_);
    task_ = task;
  }

  template <class Response>
  Response parse(const char* method, const std::string& bytes) const {
    Response response;
    check_internal(response.ParseFromString(bytes), target_, " sent an answer to ", method,
                   " that cannot be read");
    return response;
  }

 private:
  Pending start(Pending call) {
    send(call);
    return call;
  }

  // gRPC ends a call at its deadline; the master's channel does not.
  static std::pair<RpcStatus, Bytes> answer_to(Pending& pending) {
    if (pending.answer.wait_until(pending.deadline + end_margin) == std::future_status::ready)
      return pending.answer.get();
    return {{static_cast<int>(Code::deadline_exceeded), "no answer within the deadline"}, {}};
  }

  // A frozen process accepts connections and says nothing: what was sent to it is not sent again.
  bool answers() {
    const RpcCallOptions options{.deadline = Clock::now() + probe_limit};
    return client_->call_and_wait(identify_method, "", options).first.is_ok();
  }

  void send(Pending& pending) {
    RpcCallOptions options;
    options.deadline = pending.deadline;
    options.takes_pieces = pending.takes_pieces;
    const auto answered = std::make_shared<std::promise<std::pair<RpcStatus, Bytes>>>();
    pending.answer = answered->get_future();
    const auto done = [answered](const RpcStatus& status, Bytes reply) {
      answered->set_value({status, std::move(reply)});
    };
    const std::string method = std::string(master_service) + pending.method;
    const auto channel = pending.is_of_step ? link_.channel() : nullptr;
    const auto take_large = [client = client_, options, done](const RpcStatus& status,
                                                              Bytes reply) {
      if (!RpcClient::is_kept(status)) return done(status, std::move(reply));
      client->take(status, options, done);
    };
    if (channel != nullptr && channel->call(method, pending.request, options, take_large)) return;
    client_->call(method, pending.request, options, done);
  }

  [[noreturn]] void throw_failure(const char* method, const RpcStatus& status) const {
    const auto code = static_cast<Code>(status.code);
    switch (status.cause) {
      case RpcCause::none:
        if (code == Code::deadline_exceeded) {
          fail(code, method, " on ", name(), " was not answered within its deadline");
        }
        throw Error(code, status.message, node_of(status));
      case RpcCause::refused:
        fail(Code::unavailable, name(), " cannot be reached for ", method, ": ", status.message,
             ". Nobody listens there: is `leat up` or `leat task` running on that host?");
      default:
        fail(Code::unavailable, name(), " cannot be reached for ", method, ": ", status.message);
    }
  }

  // "/job:worker/task:1 (grpc://10.0.1.2:2222)"
  std::string name() const {
    std::lock_guard lock(mutex_);
    return task_.empty() ? target_ : concat(task_, " (", target_, ")");
  }

  const std::string target_;
  const std::shared_ptr<RpcClient> client_;
  MasterLink link_;
  mutable std::mutex mutex_;
  std::string task_;  // the master's, once it has said so
};

// A RunStep under way.
class RemoteStep final : public StartedStep {
 public:
  RemoteStep(MasterCalls& calls, std::string target, MasterCalls::Pending pending,
             std::vector<std::string> fetches)
      : calls_(calls),
        target_(std::move(target)),
        pending_(std::move(pending)),
        fetches_(std::move(fetches)) {}

  StepAnswer wait() override {
    const Bytes reply = calls_.finish(std::move(pending_));
    std::map<std::string, Tensor> values;
    const auto take = [&](std::string name, Tensor tensor) {
      values[std::move(name)] = std::move(tensor);
    };
    const auto response = calls_.parse<tensorflow::RunStepResponse>(
        "RunStep",
        is_large_answer(reply)
            ? decode_large_answer(reply, take)
            : read_message(reply, tensorflow::RunStepResponse::kTensorFieldNumber, take));
    if (response.status_code() != 0) {
      throw Error(static_cast<Code>(response.status_code()), response.status_error_message(),
                  response.error_node());
    }
    StepAnswer out;
    for (const std::string& fetch : fetches_) {
      const auto value = values.find(fetch);
      check_internal(value != values.end(), target_, " did not return the fetch ", fetch);
      out.fetches.push_back(value->second);
    }
    out.metadata = read_metadata(response.metadata());
    return out;
  }

 private:
  MasterCalls& calls_;
  const std::string target_;
  MasterCalls::Pending pending_;
  const std::vector<std::string> fetches_;
};

class RemoteMaster final : public MasterClient {
 public:
  explicit RemoteMaster(const std::string& target) : target_(target), calls_(target) {}

  Created create_session(std::string graph_def, const SessionOptions& options,
                         milliseconds timeout) override {
    tensorflow::CreateSessionRequest request;
    request.set_graph_def(std::move(graph_def));
    write_options(options, *request.mutable_config());
    request.set_target(target_);
    const auto response = calls_.call<tensorflow::CreateSessionResponse>(
        "CreateSession", request, Clock::now() + timeout, MasterCalls::Repeat::if_refused,
        std::min(timeout, start_limit));
    calls_.set_task(response.task());
    calls_.open_link();
    return {response.session_handle(), response.graph_version()};
  }

  int64_t extend_session(const std::string& handle, std::string graph_def, int64_t version,
                         milliseconds timeout) override {
    tensorflow::ExtendSessionRequest request;
    request.set_session_handle(handle);
    request.set_graph_def(std::move(graph_def));
    request.set_current_graph_version(version);
    return calls_
        .call<tensorflow::ExtendSessionResponse>("ExtendSession", request, Clock::now() + timeout,
                                                 MasterCalls::Repeat::if_refused, repeat_limit)
        .new_graph_version();
  }

  std::unique_ptr<StartedStep> start_step(const std::string& handle, const StepSignature& signature,
                                          std::span<const Tensor> feeds,
                                          const RunOptions& options) override {
    tensorflow::RunStepRequest request;
    request.set_session_handle(handle);
    for (const std::string& fetch : signature.fetches) request.add_fetch(fetch);
    for (const std::string& target : signature.targets) request.add_target(target);
    write_options(options, *request.mutable_options());
    request.set_store_errors_in_response_body(true);
    request.set_request_id(static_cast<int64_t>(random_id() >> 1) | 1);
    MessageWriter writer("the request RunStep");
    writer.append(request.SerializeAsString());
    for (size_t i = 0; i < feeds.size(); ++i) {
      writer.add_named_tensor(tensorflow::RunStepRequest::kFeedFieldNumber, signature.feeds[i],
                              feeds[i]);
    }
    auto pending = calls_.start_step(std::move(writer).finish(),
                                     Clock::now() + options.timeout + deadline_margin);
    return std::make_unique<RemoteStep>(calls_, target_, std::move(pending), signature.fetches);
  }

  std::vector<DeviceDescription> list_devices(const std::string& handle,
                                              milliseconds timeout) override {
    tensorflow::ListDevicesRequest request;
    request.set_session_handle(handle);
    const auto response = calls_.call<tensorflow::ListDevicesResponse>(
        "ListDevices", request, Clock::now() + timeout, MasterCalls::Repeat::if_lost,
        std::min(timeout, start_limit));
    std::vector<DeviceDescription> out;
    for (const auto* list : {&response.local_device(), &response.remote_device()}) {
      for (const tensorflow::DeviceAttributes& device : *list) out.push_back(read_device(device));
    }
    return out;
  }

  void close_session(const std::string& handle, milliseconds timeout) override {
    tensorflow::CloseSessionRequest request;
    request.set_session_handle(handle);
    calls_.call<tensorflow::CloseSessionResponse>("CloseSession", request,
                                                  Clock::now() + std::min(timeout, close_limit),
                                                  MasterCalls::Repeat::never, milliseconds(0));
  }

 private:
  const std::string target_;
  MasterCalls calls_;
};

}  // namespace

std::unique_ptr<MasterClient> make_remote_master(const std::string& target) {
  return std::make_unique<RemoteMaster>(target);
}

void reset_containers(const std::string& target, const std::vector<std::string>& containers,
                      const std::vector<std::string>& device_filters) {
  tensorflow::ResetRequest request;
  for (const std::string& container : containers) request.add_container(container);
  for (const std::string& filter : device_filters) request.add_device_filters(filter);
  MasterCalls(target).call<tensorflow::ResetResponse>("Reset", request, Clock::now() + start_limit,
                                                      MasterCalls::Repeat::if_lost, start_limit);
}

void close_session(const std::string& target, const std::string& handle) {
  tensorflow::CloseSessionRequest request;
  request.set_session_handle(handle);
  MasterCalls(target).call<tensorflow::CloseSessionResponse>(
      "CloseSession", request, Clock::now() + close_limit, MasterCalls::Repeat::never,
      milliseconds(0));
}

}  // namespace leat
