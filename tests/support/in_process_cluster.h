// A cluster in one process: N tasks, each on its own loopback port, over the real wire.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>

#include "distributed/cluster/cluster_spec.h"
#include "distributed/task.h"
#include "runtime/session.h"

namespace leat {

class InProcessCluster {
 public:
  // The cluster description that `viewer` gets. For proxies between tasks.
  using View = std::function<ClusterSpec(const TaskName& viewer, const ClusterSpec& cluster)>;

  // {{"ps", 1}, {"worker", 2}}: started and connected when the constructor returns.
  explicit InProcessCluster(const std::map<std::string, int>& jobs,
                            TaskOptions options = default_options(), View view = {});
  ~InProcessCluster();

  Task& task(const std::string& job, int index = 0) { return *tasks_.at({job, index}); }
  std::string target(const std::string& job, int index = 0) { return task(job, index).target(); }
  const ClusterSpec& spec() const { return spec_; }

  // The task ends without notifying its steps, and its address refuses connections.
  void kill(const std::string& job, int index = 0);
  // Starts a new incarnation on the same address, without variables, like a new process. Connected
  // when this returns.
  void restart(const std::string& job, int index = 0);

  // A session on the task, created with `graph`.
  std::unique_ptr<SessionInterface> session(const Graph& graph, const std::string& job = "worker",
                                            int index = 0, SessionOptions options = {});

  static TaskOptions default_options();

 private:
  ClusterSpec view_of(const TaskName& viewer) const { return view_ ? view_(viewer, spec_) : spec_; }

  const TaskOptions options_;
  const View view_;
  ClusterSpec spec_;
  std::map<TaskName, std::unique_ptr<Task>> tasks_;
};

}  // namespace leat
