// The messages between master and worker as bytes (framed_message.h): both directions of each, so
// that client and server cannot disagree. Malformed bytes are INVALID_ARGUMENT.
#pragma once

#include "distributed/grpc/rpc.h"
#include "distributed/wire/framed_message.h"
#include "distributed/worker/worker_client.h"

namespace leat {

struct ClusterView;

// Methods of the worker's service; the wire's path is "/leat.Worker/" + name.
inline constexpr const char* worker_service = "/leat.Worker/";

namespace wire {

Slices encode_status(const WorkerStatus& status);
WorkerStatus decode_status(const Bytes& bytes);

Slices encode_register_graph(const RegisterGraph& request);
RegisterGraph decode_register_graph(const Bytes& bytes);
Slices encode_graph_handle(uint64_t graph);
uint64_t decode_graph_handle(const Bytes& bytes);

struct DeregisterGraph {
  std::string session;
  uint64_t graph = 0;
};
Slices encode_deregister_graph(const DeregisterGraph& request);
DeregisterGraph decode_deregister_graph(const Bytes& bytes);

Slices encode_run_graph(const RunGraph& request);
RunGraph decode_run_graph(const Bytes& bytes);
Slices encode_run_graph_result(const RunGraphResult& result,
                               FrameSize size = FrameSize::one_message);
RunGraphResult decode_run_graph_result(const Bytes& bytes);

struct AbortStep {
  int64_t step = 0;
  Status status;
};
Slices encode_abort_step(const AbortStep& request);
AbortStep decode_abort_step(const Bytes& bytes);
Slices encode_activity(const std::vector<StepActivity>& activity);
std::vector<StepActivity> decode_activity(const Bytes& bytes);

Slices encode_task_activity(const TaskActivity& activity);
TaskActivity decode_task_activity(const Bytes& bytes);

Slices encode_view(const ClusterView& view);
ClusterView decode_view(const Bytes& bytes);

Slices encode_cleanup_session(const std::string& session);
std::string decode_cleanup_session(const Bytes& bytes);

Slices encode_reset(const std::vector<std::string>& containers);
std::vector<std::string> decode_reset(const Bytes& bytes);

}  // namespace wire
}  // namespace leat
