#include "distributed/worker/remote_worker.h"

#include "distributed/grpc/rpc_client.h"
#include "distributed/rpc_status.h"
#include "distributed/wire/channel.h"
#include "distributed/worker/worker_wire.h"

namespace leat {
namespace {

using Clock = std::chrono::steady_clock;

// For calls whose result nobody waits for.
constexpr auto notice_limit = std::chrono::seconds(10);

// Of a call that has failed.
Status status_of(const RpcStatus& status, const std::string& address, const std::string& label) {
  std::string message = status.message;
  const auto code = static_cast<Code>(status.code);
  // Whatever the reason is, it says which task is lost.
  const bool has_address = message.starts_with(address + ": ");
  if (status.cause != RpcCause::none || code == Code::unavailable || has_address) {
    if (has_address) message.erase(0, address.size() + 2);  // "host:port: reason": the label has it
    if (message.find(label) == std::string::npos) message = label + ": " + message;
  }
  return {code, message, false, node_of(status)};
}

// Sends a request, over `channel` if there is one that takes it; `answer` gets the status, and on
// success what `decode` makes of the reply. Encoding errors (a message that is too large) are
// answered too.
template <class Encode, class Decode, class Answer>
void call(const std::shared_ptr<RpcClient>& client, const std::string& label, const char* method,
          RpcCallOptions options, Encode encode, Decode decode, Answer answer,
          Channel* channel = nullptr) {
  Slices request;
  try {
    request = encode();
  } catch (...) {
    return answer(status_of_current_exception(), {});
  }
  const auto done = [label, address = client->address(), decode, answer](const RpcStatus& status,
                                                                         const Bytes& reply) {
    if (!status.is_ok()) return answer(status_of(status, address, label), {});
    decltype(decode(reply)) result{};
    try {
      result = decode(reply);
    } catch (...) {
      Status failed = status_of_current_exception();
      failed.message = label + " sent a reply that cannot be read: " + failed.message;
      return answer(failed, {});
    }
    answer({}, std::move(result));
  };
  const std::string name = std::string(worker_service) + method;
  const auto take_large = [client, options, done](const RpcStatus& status, const Bytes& reply) {
    if (!RpcClient::is_kept(status)) return done(status, reply);
    client->take(status, options, done);
  };
  if (channel != nullptr && channel->call(name, request, options, take_large)) return;
  client->call(name, std::move(request), options, done);
}

void notify(RpcClient& client, const char* method, Slices request) {
  RpcCallOptions options;
  options.deadline = Clock::now() + notice_limit;
  client.call(std::string(worker_service) + method, std::move(request), options,
              [](const RpcStatus&, const Bytes&) {});
}

}  // namespace

RemoteWorker::RemoteWorker(TaskName task, std::shared_ptr<RpcClient> client, FindChannel channel)
    : task_(std::move(task)),
      label_(concat(task_, " (", client->address(), ")")),
      client_(std::move(client)),
      channel_(std::move(channel)) {}

void RemoteWorker::status(Deadline deadline, Done<WorkerStatus> done) {
  call(
      client_, label_, "GetStatus", {deadline}, [] { return to_slices(""); }, wire::decode_status,
      std::move(done));
}

void RemoteWorker::register_graph(RegisterGraph request, Deadline deadline, Done<uint64_t> done) {
  call(
      client_, label_, "RegisterGraph", {deadline},
      [&] { return wire::encode_register_graph(request); }, wire::decode_graph_handle,
      std::move(done));
}

void RemoteWorker::deregister_graph(const std::string& session, uint64_t graph) {
  notify(*client_, "DeregisterGraph", wire::encode_deregister_graph({session, graph}));
}

void RemoteWorker::run_graph(RunGraph request, Deadline deadline, Done<RunGraphResult> done) {
  const std::shared_ptr<Channel> channel = channel_ ? channel_() : nullptr;
  call(
      client_, label_, "RunGraph", {deadline, request.any_size},
      [&] { return wire::encode_run_graph(request); }, wire::decode_run_graph_result,
      std::move(done), channel.get());
}

void RemoteWorker::abort_step(int64_t step, const Status& status, Deadline deadline,
                              Done<std::vector<StepActivity>> done) {
  call(
      client_, label_, "AbortStep", {deadline},
      [&] {
        return wire::encode_abort_step({step, status});
      },
      wire::decode_activity, std::move(done));
}

void RemoteWorker::activity(Deadline deadline, Done<TaskActivity> done) {
  call(
      client_, label_, "GetActivity", {deadline}, [] { return to_slices(""); },
      wire::decode_task_activity, std::move(done));
}

void RemoteWorker::cleanup_session(const std::string& session) {
  notify(*client_, "CleanupSession", wire::encode_cleanup_session(session));
}

void RemoteWorker::reset(const std::vector<std::string>& containers, Deadline deadline,
                         Done<> done) {
  call(
      client_, label_, "Reset", {deadline}, [&] { return wire::encode_reset(containers); },
      [](const Bytes&) { return 0; },
      [done = std::move(done)](const Status& status, int) { done(status); });
}

}  // namespace leat
