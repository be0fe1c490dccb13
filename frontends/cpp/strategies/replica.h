// One copy of the model, on one worker: what strategies have in common.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "graph/graph.h"

namespace leat {

// While it lives, new nodes of the graph get the scopes of a replica.
class ReplicaScope {
 public:
  ReplicaScope(Graph& graph, Graph::Scopes scopes)
      : graph_(graph), outer_(std::exchange(graph.scopes(), std::move(scopes))) {}
  ~ReplicaScope() { graph_.scopes() = std::move(outer_); }
  ReplicaScope(const ReplicaScope&) = delete;

 private:
  Graph& graph_;
  Graph::Scopes outer_;
};

// The current scopes of the graph, with the device of task tasks[index] of a job. INVALID_ARGUMENT
// if there is no such task.
Graph::Scopes scopes_on_worker(Graph& graph, const std::string& job, const std::vector<int>& tasks,
                               int index);

}  // namespace leat
