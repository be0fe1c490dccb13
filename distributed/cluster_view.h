// Who in a cluster waits for what, from whom, and since when, for `leat top`. The client asks one
// task, which asks all others.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "distributed/worker/worker_client.h"

namespace leat {

struct Peers;
class RpcServer;

struct TaskView {
  TaskName task;
  std::string address;
  std::string problem;  // why it does not answer; the rest is then empty
  int64_t pid = 0;
  std::string host;
  int64_t sessions = 0, graphs = 0;
  TaskActivity activity;
  uint64_t sent_bytes = 0;      // of tensors, to other tasks, since its start
  std::vector<PeerLink> links;  // to other tasks
  std::vector<DeviceDescription> devices;
};

struct ClusterView {
  TaskName asked;
  std::vector<TaskView> tasks;  // by job, then index
};

// Asks every task of the cluster. A task that has not answered by the deadline is listed with the
// reason. `done` is called once, on any thread.
void collect_view(const std::shared_ptr<const Peers>& peers,
                  std::chrono::steady_clock::time_point deadline,
                  std::function<void(ClusterView)> done);

// Adds the method to a server that has not been started. `peers` throws until they are known.
void serve_view(RpcServer& server, std::function<std::shared_ptr<const Peers>()> peers);

// Asks the task at "grpc://host:port". UNAVAILABLE, with the reason, if it cannot be reached;
// DEADLINE_EXCEEDED if it does not answer within `limit`.
ClusterView view_cluster(const std::string& target,
                         std::chrono::milliseconds limit = std::chrono::seconds(5));

// A table of the tasks and one of their activity: steps first, the longest-running on top.
std::string to_text(const ClusterView& view);

}  // namespace leat
