// The task that this process is: bound, told where the others are, ready, in service, done. A
// launcher that has started the process is told of each (launcher_link.h). `leat task` is this with
// signals; a program that is its own task (frontends/cpp/cluster_member.h) is this with a session.
#pragma once

#include <chrono>
#include <memory>

#include "distributed/cluster/cluster_spec.h"
#include "distributed/cluster/launcher_link.h"
#include "distributed/task.h"

namespace leat {

struct HostedTaskOptions {
  TaskOptions task;
  int launcher_fd = -1;  // -1: nobody is told
  int stop_fd = -1;      // readable when the task shall end; -1: only its launcher ends it
  std::chrono::milliseconds start_timeout{60'000};  // 0: none
};

// Not thread-safe, but for task().
class HostedTask {
 public:
  // Waits until its own host's name can be resolved, listens, and learns the cluster: `cluster` may
  // have open ports, which the launcher knows. cluster.task says which task it is. Errors as of
  // Task and LauncherLink::bound().
  HostedTask(const ResolvedCluster& cluster, HostedTaskOptions options);
  ~HostedTask();
  HostedTask(const HostedTask&) = delete;

  // Waits until all other tasks are connected, and tells the launcher whom it misses meanwhile.
  // False if it was told to stop first. UNAVAILABLE after the start time-out, with a table of who
  // is missing, and why; ALREADY_EXISTS if another process owns this task.
  bool wait_for_peers();
  // The launcher need not wait for this process any more.
  void done() { link_.done(); }
  // Computes for others until it is told to stop.
  void serve();

  Task& task() { return *task_; }
  const ClusterSpec& cluster() const { return cluster_; }  // every port known

 private:
  class News;
  bool wait(std::chrono::milliseconds limit);
  void wait_for_name(const std::string& host);

  const HostedTaskOptions options_;
  LauncherLink link_;
  std::unique_ptr<News> news_;
  ClusterSpec cluster_;
  std::unique_ptr<Task> task_;
};

}  // namespace leat
