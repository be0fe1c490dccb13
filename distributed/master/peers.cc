#include "distributed/master/peers.h"

#include "distributed/cluster/identity.h"

namespace leat {

std::string Peers::describe(const TaskName& task) const {
  return spec.contains(task) ? concat(task, " (", spec.address(task), ")") : task.to_string();
}

std::string Peers::stranger(const TaskName& meant, const WorkerStatus& status) const {
  if (status.task != meant) {
    return concat(status.task, " answers there (process ", status.pid, " on ", status.host,
                  "): the cluster descriptions differ");
  }
  if (!may_be_one_cluster(status.cluster_id,
                          cluster_mark(cluster_id, status.task, status.incarnation))) {
    return concat("a task of another cluster answers there (process ", status.pid, " on ",
                  status.host, ")");
  }
  return {};
}

}  // namespace leat
