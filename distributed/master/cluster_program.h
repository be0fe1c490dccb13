// A step signature's partitions, registered with the workers that run them. On a worker, each part
// is a RegisteredGraph with a Program per device (runtime/).
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "distributed/master/peers.h"
#include "distributed/worker/worker_client.h"
#include "graph/passes/pipeline.h"

namespace leat {

// Deregistered when the last handle goes. Each running step holds one.
class ClusterProgram {
 public:
  struct Part {
    TaskName task;
    std::shared_ptr<WorkerClient> worker;
    uint64_t incarnation = 0;
    uint64_t graph = 0;
    std::vector<std::string> feeds;  // "node:index" that this task consumes
  };

  ClusterProgram() = default;
  ~ClusterProgram();
  ClusterProgram(const ClusterProgram&) = delete;

  std::string session;
  std::vector<Part> parts;
  std::vector<CutEdge> edges;
  std::map<std::string, TaskName> fetch_tasks;   // the task that owes each fetch
  std::map<std::string, DType> fetch_dtypes;
  std::map<std::string, TaskName> target_tasks;  // the task that runs each target
  FetchFeeds fetch_feeds;                        // of a partial run
};

// The session and master on whose behalf it is registered.
struct ProgramOwner {
  std::string session;
  bool isolate_state = false;
  uint64_t master_incarnation = 0;
};

// Gets the program; or the first error, and the tasks that have restarted since `tasks` was
// collected (they answered ABORTED). On any thread, possibly before the return.
using ProgramRegistered = std::function<void(const Status&, std::shared_ptr<const ClusterProgram>,
                                             const std::vector<TaskName>& restarted)>;
void register_program(const Peers& peers, const ProgramOwner& owner, PartitionedGraph graph,
                      const std::vector<std::string>& targets, const TaskStatuses& tasks,
                      ProgramRegistered done);

}  // namespace leat
