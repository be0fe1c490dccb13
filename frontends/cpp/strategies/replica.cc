#include "frontends/cpp/strategies/replica.h"

#include "core/error.h"

namespace leat {

Graph::Scopes scopes_on_worker(Graph& graph, const std::string& job, const std::vector<int>& tasks,
                               int index) {
  check(index >= 0 && index < std::ssize(tasks), "replica ", index, " does not exist: job '", job,
        "' has ", tasks.size(), " tasks");
  DeviceName worker;
  worker.job = job;
  worker.task = tasks[static_cast<size_t>(index)];
  Graph::Scopes scopes = graph.scopes();
  scopes.device = worker.with_defaults(scopes.device);
  return scopes;
}

}  // namespace leat
