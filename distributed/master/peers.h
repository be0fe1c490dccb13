// A master's knowledge of its cluster's tasks, and how it reaches them.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>

#include "distributed/cluster/cluster_spec.h"
#include "distributed/timer.h"
#include "distributed/wait_list.h"
#include "distributed/worker/worker_client.h"

namespace leat {

struct Peers {
  ClusterSpec spec;
  std::string cluster_id;
  TaskName self;
  std::function<std::shared_ptr<WorkerClient>(const TaskName&)> worker;
  // "last heard 4.2 s ago", or "" if nothing is known.
  std::function<std::string(const TaskName&)> last_heard;
  // It was connected to this task and no longer is.
  std::function<bool(const TaskName&)> is_lost;
  Timer* timer = nullptr;
  WaitList* waits = nullptr;

  // "/job:ps/task:1 (10.0.1.7:2222)"
  std::string describe(const TaskName& task) const;
  // Why the answering task is not `meant`; empty if it is.
  std::string stranger(const TaskName& meant, const WorkerStatus& status) const;
};

// The tasks' answers about themselves.
using TaskStatuses = std::map<TaskName, WorkerStatus>;

}  // namespace leat
