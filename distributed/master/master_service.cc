#include "distributed/master/master_service.h"

#include <algorithm>
#include <atomic>
#include <map>
#include <string>

#include "core/execution/thread_pool.h"
#include "core/execution/work_source.h"
#include "core/utf8.h"
#include "distributed/grpc/rpc_server.h"
#include "distributed/master/master.h"
#include "distributed/proto/master.pb.h"
#include "distributed/request_memory.h"
#include "distributed/rpc_status.h"
#include "distributed/timer.h"
#include "distributed/wire/large_answer.h"
#include "distributed/wire/master_codec.h"
#include "distributed/wire/tensor_stream.h"
#include "graph/endpoint.h"
#include "graph/import/graph_def.h"

namespace leat {
namespace {

using Clock = std::chrono::steady_clock;

constexpr size_t longest_status = 3'072;  // of a gRPC status message, as TensorFlow cuts it
// After a lost connection, a client has this long to repeat its request before its step is
// cancelled.
constexpr auto repeat_grace = std::chrono::seconds(1);
constexpr const char* client_is_gone =
    "the step was cancelled: its client cancelled it, or its connection was lost";
// What is kept of a client's patience for telling it what a step waited for.
constexpr auto answer_time = std::chrono::milliseconds(500);

// ---- Errors ----

// A gRPC status has a limit; the node that TensorFlow's client looks for stands at the end and
// stays.
std::string cut(const std::string& message, const std::string& node) {
  if (message.size() <= longest_status) return message;
  std::string tail = node.empty() ? "" : as_utf8(node_text(node));
  if (tail.size() >= 1'000) tail.clear();
  return message.substr(0, longest_status - tail.size() - 3) + "..." + tail;
}

// TensorFlow's client silently repeats a call that gRPC calls UNAVAILABLE: a step that may have
// been applied.
RpcStatus rpc_status(const Status& status) {
  const Code code = status.code == Code::unavailable ? Code::aborted : status.code;
  return to_rpc_status({code, cut(as_utf8(status.message), status.node), false, status.node});
}

template <class Message>
Message parse(const RpcCall& call) {
  Message message;
  const std::vector<std::string_view>& parts = call.request().parts();
  check(call.request().size() <= INT32_MAX, "the request has ", call.request().size(),
        " bytes; a message of this protocol holds at most ", INT32_MAX);
  const bool parsed =
      parts.size() == 1 ? message.ParseFromArray(parts[0].data(), static_cast<int>(parts[0].size()))
                        : message.ParseFromString(call.request().to_string());
  check(parsed, "the request is not a ", message.GetTypeName());
  return message;
}

template <class Message>
void reply(RpcCall call, const Status& status, const Message& message) {
  if (!status.is_ok()) return call.fail(rpc_status(status));
  call.reply(message.SerializeAsString());
}

// ---- Steps ----

// When the step must have ended: some time before the client stops listening, so that it still
// hears what was missing.
StepTimes step_times(const RpcCall& call, std::chrono::milliseconds timeout) {
  const Clock::time_point now = Clock::now();
  StepTimes out;
  out.limit = timeout;
  if (timeout.count() > 0) out.deadline = now + timeout;
  if (!call.deadline()) return out;
  if (!out.deadline || *out.deadline > *call.deadline()) out.limit = *call.deadline() - now;
  const auto left = std::max(*call.deadline() - now, Clock::duration::zero());
  const Clock::time_point last =
      *call.deadline() - std::min<Clock::duration>(left / 4, answer_time);
  if (!out.deadline || *out.deadline > last) out.deadline = last;
  out.answer_by = call.deadline();
  return out;
}

bool is_empty(const RunMetadata& metadata) {
  return metadata.events.empty() && metadata.partition_graphs.empty();
}

// An answer as bytes, so that a repeated request gets the very same.
struct Answer {
  RpcStatus status;
  Slices body;
  size_t bytes = 0;
};

Answer finished(MessageWriter writer) {
  Answer out;
  out.bytes = writer.size();
  out.body = std::move(writer).finish();
  return out;
}

Answer answer_of(const Status& status, const google::protobuf::MessageLite& response,
                 const char* what) {
  if (!status.is_ok()) return {.status = rpc_status(status)};
  MessageWriter writer(what);
  writer.append(response.SerializeAsString());
  return finished(std::move(writer));
}

uint64_t bytes_of(const std::vector<Tensor>& tensors) {
  uint64_t bytes = 0;
  for (const Tensor& tensor : tensors) bytes += tensor.bytes();
  return bytes;
}

Answer large_answer(const tensorflow::RunStepRequest& request, const StepOutcome& outcome) {
  tensorflow::RunStepResponse response;
  if (!is_empty(outcome.metadata)) write_metadata(outcome.metadata, *response.mutable_metadata());
  NamedTensors fetches;
  for (size_t i = 0; i < outcome.fetches.size(); ++i)
    fetches.emplace_back(request.fetch(static_cast<int>(i)), outcome.fetches[i]);
  Answer out;
  out.body = encode_large_answer(response.SerializeAsString(), fetches);
  out.bytes = leat::bytes_of(out.body);
  return out;
}

// The fetches under exactly the names that were asked for, or the error: in the body if the client
// wants it there.
Answer step_answer(const tensorflow::RunStepRequest& request, const StepOutcome& outcome,
                   bool takes_any_size) {
  Status status = outcome.status;
  if (status.is_ok()) {
    try {
      if (takes_any_size && bytes_of(outcome.fetches) > most_fetched_bytes)
        return large_answer(request, outcome);
      MessageWriter writer("the reply of RunStep");
      for (size_t i = 0; i < outcome.fetches.size(); ++i) {
        writer.add_named_tensor(tensorflow::RunStepResponse::kTensorFieldNumber,
                                request.fetch(static_cast<int>(i)), outcome.fetches[i]);
      }
      if (!is_empty(outcome.metadata)) {
        tensorflow::RunStepResponse response;
        write_metadata(outcome.metadata, *response.mutable_metadata());
        writer.append(response.SerializeAsString());
      }
      return finished(std::move(writer));
    } catch (...) {
      status = status_of_current_exception();
    }
  }
  MessageWriter writer("the reply of RunStep");
  tensorflow::RunStepResponse response;
  response.set_status_code(static_cast<int>(status.code));
  response.set_status_error_message(as_utf8(status.message));
  response.set_error_node(status.node);
  writer.append(response.SerializeAsString());
  Answer answer = finished(std::move(writer));
  if (!request.store_errors_in_response_body()) answer.status = rpc_status(status);
  return answer;
}

MasterSession::Cancel cancel_for_lost_client(std::shared_ptr<MasterSession> session,
                                             MasterSession::Cancel cancel) {
  return [session = std::move(session), cancel = std::move(cancel)](const Status& status) {
    cancel(status);
    session->client_left();
  };
}

// ---- The service ----

class MasterService : public std::enable_shared_from_this<MasterService> {
 public:
  MasterService(std::shared_ptr<Master> master, ThreadPool& pool, Timer& timer)
      : master_(std::move(master)), pool_(pool), timer_(timer) {}

  void create_session(RpcCall call);
  void extend_session(RpcCall call);
  void run_step(RpcCall call);
  void partial_run_setup(RpcCall call);
  void close_session(RpcCall call);
  void list_devices(RpcCall call);
  void reset(RpcCall call);
  void make_callable(RpcCall call);
  void run_callable(RpcCall call);
  void release_callable(RpcCall call);

 private:
  // A step on behalf of one or, after repeats, several calls.
  struct Request {
    std::atomic<int> listeners{0};
    std::mutex mutex;
    MasterSession::Cancel cancel;
    bool is_cancelled = false;

    void set_cancel(MasterSession::Cancel action) {
      {
        std::lock_guard lock(mutex);
        cancel = action;
        if (!is_cancelled) return;
      }
      action({Code::cancelled, client_is_gone, false});
    }
    void cancel_if_left() {
      MasterSession::Cancel action;
      {
        std::lock_guard lock(mutex);
        if (listeners > 0 || is_cancelled) return;
        is_cancelled = true;
        action = cancel;
      }
      if (action) action({Code::cancelled, client_is_gone, false});
    }
  };

  // Joins the call to the request with this id. True: it is the first, so do the work and call
  // answer().
  bool join(const RpcCall& call, uint64_t id, std::shared_ptr<Request>& request);
  void answer(uint64_t id, const std::shared_ptr<Request>& request, RpcCall call, Answer answer);

  const std::shared_ptr<Master> master_;
  ThreadPool& pool_;
  Timer& timer_;
  RequestMemory<Answer> answers_{RequestMemoryLimits{.bytes = 64 << 20}};
  std::mutex mutex_;
  std::map<uint64_t, std::shared_ptr<Request>> running_;
};

void send(RpcCall call, const std::shared_ptr<const Answer>& answer) {
  if (answer == nullptr) {
    return call.fail({static_cast<int>(Code::aborted),
                      "this request was answered before, and the answer is no longer kept: a step "
                      "is never run twice"});
  }
  if (!answer->status.is_ok()) return call.fail(answer->status);
  call.reply(answer->body);
}

bool MasterService::join(const RpcCall& call, uint64_t id, std::shared_ptr<Request>& request) {
  bool is_first = true;
  request = std::make_shared<Request>();
  if (id != 0) {
    std::lock_guard lock(mutex_);
    is_first = answers_.begin(
        id, [call](const std::shared_ptr<const Answer>& answer) { send(call, answer); });
    if (is_first) running_[id] = request;
    if (const auto found = running_.find(id); found != running_.end()) request = found->second;
  }
  ++request->listeners;
  const bool may_come_again = id != 0;
  RpcCall watched = call;
  watched.on_cancel([self = shared_from_this(), request, may_come_again] {
    if (--request->listeners > 0) return;
    if (!may_come_again) return request->cancel_if_left();
    self->timer_.after(repeat_grace, [request] { request->cancel_if_left(); });
  });
  return is_first;
}

void MasterService::answer(uint64_t id, const std::shared_ptr<Request>& request, RpcCall call,
                           Answer answer) {
  request->set_cancel([](const Status&) {});
  const auto kept = std::make_shared<const Answer>(std::move(answer));
  if (id == 0) return send(call, kept);
  {
    std::lock_guard lock(mutex_);
    running_.erase(id);
  }
  answers_.answer(id, kept, kept->bytes);
}

void MasterService::create_session(RpcCall call) {
  const WorkSource::Scope source(WorkSource::requests);
  pool_.schedule([self = shared_from_this(), call]() mutable {
    try {
      auto request = parse<tensorflow::CreateSessionRequest>(call);
      SessionOptions options = read_options(request.config());
      self->master_->create_session(
          std::move(*request.mutable_graph_def()), std::move(options), call.deadline(),
          [call, master = self->master_](const Status& status, const std::string& handle) {
            if (status.is_ok() && call.is_cancelled())
              master->close_session(handle, [](const Status&) {});  // nobody has its handle
            tensorflow::CreateSessionResponse response;
            response.set_session_handle(handle);
            if (status.is_ok()) response.set_task(master->peers()->self.to_string());
            reply(call, status, response);
          });
    } catch (...) {
      call.fail(rpc_status(status_of_current_exception()));
    }
  });
}

void MasterService::extend_session(RpcCall call) {
  const WorkSource::Scope source(WorkSource::requests);
  pool_.schedule([self = shared_from_this(), call]() mutable {
    try {
      auto request = parse<tensorflow::ExtendSessionRequest>(call);
      self->master_->extend_session(request.session_handle(),
                                    std::move(*request.mutable_graph_def()),
                                    request.current_graph_version(), call.deadline(),
                                    [call](const Status& status, int64_t version) {
                                      tensorflow::ExtendSessionResponse response;
                                      response.set_new_graph_version(version);
                                      reply(call, status, response);
                                    });
    } catch (...) {
      call.fail(rpc_status(status_of_current_exception()));
    }
  });
}

void MasterService::run_step(RpcCall call) {
  ClientRequest step;
  const auto request = std::make_shared<tensorflow::RunStepRequest>();
  const std::string rest =
      read_message(call.request(), tensorflow::RunStepRequest::kFeedFieldNumber,
                   [&](std::string name, Tensor tensor) {
                     step.feeds.emplace_back(std::move(name), std::move(tensor));
                   });
  check(request->ParseFromString(rest), "the request is not a RunStepRequest");
  const auto id = static_cast<uint64_t>(request->request_id());
  std::shared_ptr<Request> running;
  if (!join(call, id, running)) return;
  const auto done = [self = shared_from_this(), id, running, call,
                     request](const StepOutcome& outcome) {
    self->answer(id, running, call, step_answer(*request, outcome, call.takes_pieces()));
  };
  try {
    step.options = read_options(request->options());
    step.any_size = call.takes_pieces();
    const auto session = master_->session(request->session_handle());
    step.fetches.assign(request->fetch().begin(), request->fetch().end());
    step.targets.assign(request->target().begin(), request->target().end());
    if (step.options.timeout.count() == 0) step.options.timeout = session->options().timeout;
    step.times = step_times(call, step.options.timeout);
    const std::string& partial_run = request->partial_run_handle();
    running->set_cancel(cancel_for_lost_client(
        session, partial_run.empty() ? session->run(std::move(step), done)
                                     : session->partial_run(partial_run, std::move(step), done)));
  } catch (...) {
    done({.status = status_of_current_exception()});
  }
}

void MasterService::partial_run_setup(RpcCall call) {
  const auto request = parse<tensorflow::PartialRunSetupRequest>(call);
  const auto id = static_cast<uint64_t>(request.request_id());
  std::shared_ptr<Request> running;
  if (!join(call, id, running)) return;
  const auto done = [self = shared_from_this(), id, running, call](const Status& status,
                                                                   const std::string& handle) {
    tensorflow::PartialRunSetupResponse response;
    response.set_partial_run_handle(handle);
    self->answer(id, running, call, answer_of(status, response, "the reply of PartialRunSetup"));
  };
  try {
    StepSignature signature;
    signature.feeds.assign(request.feed().begin(), request.feed().end());
    signature.fetches.assign(request.fetch().begin(), request.fetch().end());
    signature.targets.assign(request.target().begin(), request.target().end());
    master_->session(request.session_handle())->partial_run_setup(signature, done);
  } catch (...) {
    done(status_of_current_exception(), "");
  }
}

void MasterService::close_session(RpcCall call) {
  const auto request = parse<tensorflow::CloseSessionRequest>(call);
  master_->close_session(request.session_handle(), [call](const Status& status) {
    reply(call, status, tensorflow::CloseSessionResponse());
  });
}

void MasterService::list_devices(RpcCall call) {
  const auto request = parse<tensorflow::ListDevicesRequest>(call);
  master_->list_devices(
      request.session_handle(),
      [call, master = master_](const Status& status,
                               const std::vector<DeviceDescription>& devices) {
        tensorflow::ListDevicesResponse response;
        for (const DeviceDescription& device : devices) {
          const bool is_own = TaskName::of(DeviceName::parse(device.name)) == master->peers()->self;
          write_device(device,
                       *(is_own ? response.add_local_device() : response.add_remote_device()));
        }
        reply(call, status, response);
      });
}

void MasterService::reset(RpcCall call) {
  const auto request = parse<tensorflow::ResetRequest>(call);
  master_->reset(
      {request.container().begin(), request.container().end()},
      {request.device_filters().begin(), request.device_filters().end()},
      [call](const Status& status) { reply(call, status, tensorflow::ResetResponse()); });
}

void MasterService::make_callable(RpcCall call) {
  const auto request = parse<tensorflow::MakeCallableRequest>(call);
  const auto id = static_cast<uint64_t>(request.request_id());
  std::shared_ptr<Request> running;
  if (!join(call, id, running)) return;
  const auto done = [self = shared_from_this(), id, running, call](const Status& status,
                                                                   int64_t handle) {
    tensorflow::MakeCallableResponse response;
    response.set_handle(handle);
    self->answer(id, running, call, answer_of(status, response, "the reply of MakeCallable"));
  };
  try {
    const tensorflow::CallableOptions& options = request.options();
    const RunOptions run_options = read_options(options.run_options());
    StepSignature signature;
    for (const tensorflow::TensorConnection& connection : options.tensor_connection()) {
      const std::string to = Endpoint::complete(connection.to_tensor());
      const bool is_new = signature.connections.emplace(to, connection.from_tensor()).second;
      check(is_new, "Endpoint \"", to, "\" fed more than once.");
    }
    signature.feeds.assign(options.feed().begin(), options.feed().end());
    signature.fetches.assign(options.fetch().begin(), options.fetch().end());
    signature.targets.assign(options.target().begin(), options.target().end());
    master_->session(request.session_handle())
        ->make_callable(std::move(signature), run_options, done);
  } catch (...) {
    done(status_of_current_exception(), 0);
  }
}

void MasterService::run_callable(RpcCall call) {
  std::vector<Tensor> feeds;
  tensorflow::RunCallableRequest request;
  const std::string rest =
      read_message_of_tensors(call.request(), tensorflow::RunCallableRequest::kFeedFieldNumber,
                              [&](Tensor tensor) { feeds.push_back(std::move(tensor)); });
  check(request.ParseFromString(rest), "the request is not a RunCallableRequest");
  const auto id = static_cast<uint64_t>(request.request_id());
  std::shared_ptr<Request> running;
  if (!join(call, id, running)) return;
  const auto done = [self = shared_from_this(), id, running, call](const StepOutcome& outcome) {
    Answer answer;
    try {
      throw_if_error(outcome.status);
      MessageWriter writer("the reply of RunCallable");
      for (const Tensor& fetch : outcome.fetches) {
        writer.add_tensor(tensorflow::RunCallableResponse::kFetchFieldNumber, fetch);
      }
      if (!is_empty(outcome.metadata)) {
        tensorflow::RunCallableResponse response;
        write_metadata(outcome.metadata, *response.mutable_metadata());
        writer.append(response.SerializeAsString());
      }
      answer = finished(std::move(writer));
    } catch (...) {
      answer.status = rpc_status(status_of_current_exception());
    }
    self->answer(id, running, call, std::move(answer));
  };
  try {
    const auto session = master_->session(request.session_handle());
    ClientRequest step = session->request_of_callable(request.handle(), std::move(feeds));
    if (step.options.timeout.count() == 0) step.options.timeout = session->options().timeout;
    step.times = step_times(call, step.options.timeout);
    running->set_cancel(cancel_for_lost_client(session, session->run(std::move(step), done)));
  } catch (...) {
    done({.status = status_of_current_exception()});
  }
}

void MasterService::release_callable(RpcCall call) {
  const auto request = parse<tensorflow::ReleaseCallableRequest>(call);
  master_->session(request.session_handle())->release_callable(request.handle());
  reply(call, {}, tensorflow::ReleaseCallableResponse());
}

}  // namespace

void serve_master(RpcServer& server, std::shared_ptr<Master> master, ThreadPool& pool,
                  Timer& timer) {
  const auto service = std::make_shared<MasterService>(std::move(master), pool, timer);
  using Method = void (MasterService::*)(RpcCall);
  const std::pair<const char*, Method> methods[] = {
      {"CreateSession", &MasterService::create_session},
      {"ExtendSession", &MasterService::extend_session},
      {"RunStep", &MasterService::run_step},
      {"PartialRunSetup", &MasterService::partial_run_setup},
      {"CloseSession", &MasterService::close_session},
      {"ListDevices", &MasterService::list_devices},
      {"Reset", &MasterService::reset},
      {"MakeCallable", &MasterService::make_callable},
      {"RunCallable", &MasterService::run_callable},
      {"ReleaseCallable", &MasterService::release_callable},
  };
  for (const auto& [name, method] : methods) {
    server.handle(std::string(master_service) + name, [service, method = method](RpcCall call) {
      try {
        (service.get()->*method)(call);
      } catch (...) {
        call.fail(rpc_status(status_of_current_exception()));
      }
    });
  }
}

}  // namespace leat
