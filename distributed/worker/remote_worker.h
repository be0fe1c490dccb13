// Another task's worker, over the wire.
#pragma once

#include <memory>
#include <string>

#include "distributed/worker/worker_client.h"

namespace leat {

class Channel;
class RpcClient;

// Calls the worker of `task` at its address. Steps go over the channel between the two tasks, if
// `channel` finds one and they fit (Channel::call); all else goes over gRPC. If it is unreachable,
// a call fails at once with UNAVAILABLE and a text that names the task, the address and the reason:
// "/job:ps/task:1 (10.0.1.7:2222): Connection refused".
class RemoteWorker final : public WorkerClient {
 public:
  using FindChannel = std::function<std::shared_ptr<Channel>()>;

  RemoteWorker(TaskName task, std::shared_ptr<RpcClient> client, FindChannel channel = {});

  void status(Deadline deadline, Done<WorkerStatus> done) override;
  void register_graph(RegisterGraph request, Deadline deadline, Done<uint64_t> done) override;
  void deregister_graph(const std::string& session, uint64_t graph) override;
  void run_graph(RunGraph request, Deadline deadline, Done<RunGraphResult> done) override;
  void abort_step(int64_t step, const Status& status, Deadline deadline,
                  Done<std::vector<StepActivity>> done) override;
  void activity(Deadline deadline, Done<TaskActivity> done) override;
  void cleanup_session(const std::string& session) override;
  void reset(const std::vector<std::string>& containers, Deadline deadline, Done<> done) override;

 private:
  const TaskName task_;
  const std::string label_;  // "/job:ps/task:1 (10.0.1.7:2222)"
  const std::shared_ptr<RpcClient> client_;
  const FindChannel channel_;
};

}  // namespace leat
