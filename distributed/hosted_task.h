// The task that this process is: bound, given the others' addresses, ready, in service, done. It
// reports each state to the launcher that started the process (launcher_link.h). `leat task` is
// this plus signals; a program that is its own task (frontends/cpp/cluster.h) is this plus a
// session.
#pragma once

#include <chrono>
#include <memory>

#include "distributed/cluster/cluster_spec.h"
#include "distributed/cluster/launcher_link.h"
#include "distributed/task.h"

namespace leat {

struct HostedTaskOptions {
  TaskOptions task;
  int launcher_fd = -1;  // -1: no reports
  int stop_fd = -1;      // readable when the task must end; -1: only its launcher ends it
  std::chrono::milliseconds start_timeout{60'000};  // 0: none
};

// Not thread-safe, except task().
class HostedTask {
 public:
  // Waits until its own host name resolves, listens, and learns the cluster: `cluster` may have
  // open ports, which the launcher knows. cluster.task is this task. Fails like Task and
  // LauncherLink::bound().
  HostedTask(const ResolvedCluster& cluster, HostedTaskOptions options);
  ~HostedTask();
  HostedTask(const HostedTask&) = delete;

  // Waits until all other tasks are connected, and meanwhile reports missing ones to the launcher.
  // False if it was stopped first. UNAVAILABLE after the start timeout, with a table of missing
  // tasks and reasons; ALREADY_EXISTS if another process owns this task.
  bool wait_for_peers();
  // The launcher need no longer wait for this process.
  void done() { link_.done(); }
  // Computes for others until it is stopped.
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
