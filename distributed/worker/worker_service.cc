#include "distributed/worker/worker_service.h"

#include <map>

#include "core/execution/thread_pool.h"
#include "core/execution/work_source.h"
#include "core/memory/lasting_memory.h"
#include "distributed/grpc/rpc_server.h"
#include "distributed/rpc_status.h"
#include "distributed/worker/worker.h"
#include "distributed/worker/worker_wire.h"

namespace leat {
namespace {

void fail_call(RpcCall& call, const Status& status) { call.fail(to_rpc_status(status)); }

void run_graph(Worker& worker, RpcCall call) {
  RunGraph request = wire::decode_run_graph(call.request());
  const int64_t step = request.step;
  const std::string session = request.session;
  const std::weak_ptr<Worker> kept = worker.weak_from_this();
  call.on_cancel([kept, step] {
    const auto worker = kept.lock();
    if (worker != nullptr)
      worker->abort(step, {Code::cancelled, "the master no longer waits for the step", true});
  });
  worker.run_graph(
      std::move(request), call.deadline(),
      [call, kept, step, session](const Status& status, RunGraphResult result) mutable {
        if (!status.is_ok()) return fail_call(call, status);
        try {
          const auto worker = kept.lock();
          call.reply(wire::encode_run_graph_result(result, call.takes_pieces()
                                                               ? wire::FrameSize::any
                                                               : wire::FrameSize::one_message),
                     worker ? worker->reply_leaves(step, session) : nullptr);
        } catch (...) {
          fail_call(call, status_of_current_exception());
        }
      });
}

void register_graph(Worker& worker, RpcCall call) {
  // Not on the transport's thread: a large graph takes its time.
  const WorkSource::Scope source(WorkSource::requests);
  worker.pool().schedule([worker = worker.shared_from_this(), call]() mutable {
    if (call.is_cancelled())
      return fail_call(call, {Code::cancelled, "nobody waits for the graph"});
    try {
      RegisterGraph request;
      {
        const LastingMemory::Scope for_graph;
        request = wire::decode_register_graph(call.request());
      }
      // The master gave up meanwhile: it does not know the graph, and told us so, perhaps, before
      // it was there.
      const std::string session = request.session;
      worker->register_graph(std::move(request), call.deadline(),
                             [call, session, worker](const Status& status, uint64_t graph) mutable {
                               if (!status.is_ok()) return fail_call(call, status);
                               if (call.is_cancelled()) worker->deregister_graph(session, graph);
                               call.reply(wire::encode_graph_handle(graph));
                             });
    } catch (...) {
      Status status = status_of_current_exception();
      status.message = concat(worker->task(), " cannot do RegisterGraph: ", status.message);
      fail_call(call, status);
    }
  });
}

using Method = void (*)(Worker&, RpcCall);

const std::map<std::string, Method> methods = {
    {"GetStatus", [](Worker& worker,
                     RpcCall call) { call.reply(wire::encode_status(worker.current_status())); }},
    {"RegisterGraph", register_graph},
    {"DeregisterGraph",
     [](Worker& worker, RpcCall call) {
       const auto request = wire::decode_deregister_graph(call.request());
       worker.deregister_graph(request.session, request.graph);
       call.reply("");
     }},
    {"RunGraph", run_graph},
    {"AbortStep",
     [](Worker& worker, RpcCall call) {
       const auto request = wire::decode_abort_step(call.request());
       call.reply(wire::encode_activity(worker.abort(request.step, request.status)));
     }},
    {"GetActivity",
     [](Worker& worker, RpcCall call) {
       call.reply(wire::encode_task_activity(worker.current_activity()));
     }},
    {"CleanupSession",
     [](Worker& worker, RpcCall call) {
       worker.cleanup_session(wire::decode_cleanup_session(call.request()));
       call.reply("");
     }},
    {"Reset",
     [](Worker& worker, RpcCall call) {
       worker.reset(wire::decode_reset(call.request()), call.deadline(),
                    [call](const Status&) mutable { call.reply(""); });
     }},
};

}  // namespace

void serve_worker(RpcServer& server, std::shared_ptr<Worker> worker) {
  for (const auto& [name, method] : methods) {
    server.handle(worker_service + name, [worker, name = name, method = method](RpcCall call) {
      try {
        method(*worker, call);
      } catch (...) {
        Status status = status_of_current_exception();
        status.message = concat(worker->task(), " cannot do ", name, ": ", status.message);
        fail_call(call, status);
      }
    });
  }
}

}  // namespace leat
