// Tasks of a cluster in one process, over loopback: each has a server, its membership and a router.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "core/execution/thread_pool.h"
#include "distributed/cluster/membership.h"
#include "distributed/grpc/rpc_server.h"
#include "distributed/worker/rendezvous_router.h"

namespace leat {

struct ConnectedTask {
  ConnectedTask(TaskIdentity identity, MembershipOptions membership_options,
                RouterOptions router_options);
  ~ConnectedTask() { stop(); }
  // Leaves the cluster: with a goodbye if `politely`, else as a process that ends without one.
  void stop(bool politely = true);

  TaskIdentity identity;
  std::string address;  // 127.0.0.1 and a free port
  RpcServer server;
  std::shared_ptr<RendezvousRouter> router;
  std::unique_ptr<Membership> membership;
};

class ConnectedTasks {
 public:
  // "ps:0", "worker:1", …
  explicit ConnectedTasks(const std::vector<std::string>& names, MembershipOptions options = {},
                          RouterOptions router = {});

  ConnectedTask& operator[](const std::string& name) { return *tasks_.at(name); }
  // Adds a task without starting it.
  ConnectedTask& add(const std::string& name, const std::string& cluster_id = "test");
  void start(const std::string& name) {
    (*this)[name].membership->start(spec, (*this)[name].router);
  }
  void stop(const std::string& name, bool politely = true) { (*this)[name].stop(politely); }
  // Connects each task to all others.
  void start_all();
  void wait_until_connected();

  static TaskName task(const std::string& name);
  ClusterSpec spec;

 private:
  MembershipOptions options_;
  RouterOptions router_options_;
  std::map<std::string, std::unique_ptr<ConnectedTask>> tasks_;
};

}  // namespace leat
