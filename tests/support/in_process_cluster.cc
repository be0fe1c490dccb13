#include "tests/support/in_process_cluster.h"

#include "distributed/cluster/membership.h"
#include "distributed/cluster_session.h"
#include "distributed/random_id.h"
#include "tests/support/eventually.h"

namespace leat {

InProcessCluster::InProcessCluster(const std::map<std::string, int>& jobs, TaskOptions options,
                                   View view)
    : options_(options), view_(std::move(view)) {
  for (const auto& [job, count] : jobs) {
    for (int index = 0; index < count; ++index) spec_.add({job, index}, "127.0.0.1:0");
  }
  spec_.set_id(concat("test-", random_id()));
  for (const TaskName& name : spec_.tasks())
    tasks_[name] = std::make_unique<Task>(spec_, name, options_);
  for (const auto& [name, task] : tasks_) spec_.set_address(name, task->address());
  for (const auto& [name, task] : tasks_) task->start(view_of(name));
  for (const auto& [name, task] : tasks_) task->wait_for_peers();
}

InProcessCluster::~InProcessCluster() {
  for (const auto& [name, task] : tasks_) task->shutdown();
}

void InProcessCluster::kill(const std::string& job, int index) { tasks_.erase({job, index}); }

void InProcessCluster::restart(const std::string& job, int index) {
  const TaskName name{job, index};
  tasks_.erase(name);
  Task& fresh = *(tasks_[name] = std::make_unique<Task>(spec_, name, options_));
  fresh.start(view_of(name));
  fresh.wait_for_peers();
  for (const auto& [other, task] : tasks_) {
    if (other == name) continue;
    // The others may not have noticed yet that the old task has gone.
    const bool is_known = eventually([&, task = task.get()] {
      const PeerStatus peer = task->membership().peer(name);
      return peer.state == PeerState::connected && peer.incarnation == fresh.incarnation();
    });
    check_internal(is_known, other, " did not connect to the restarted ", name);
  }
}

std::unique_ptr<SessionInterface> InProcessCluster::session(const Graph& graph,
                                                            const std::string& job, int index,
                                                            SessionOptions options) {
  options.target = target(job, index);
  if (options.timeout.count() == 0) options.timeout = std::chrono::seconds(60);
  std::unique_ptr<SessionInterface> session = make_grpc_session(options);
  session->extend(graph);
  return session;
}

TaskOptions InProcessCluster::default_options() {
  TaskOptions options;
  options.threads = 2;
  return options;
}

}  // namespace leat
