// Makes a pass's new graph, node by node in the old order; each node is copied, replaced or left
// out.
#pragma once

#include <unordered_map>
#include <utility>
#include <vector>

#include "graph/graph.h"

namespace leat {

// Maps every node of the old graph to the new one. Copy or replace every node before its users.
class Rebuild {
 public:
  explicit Rebuild(const Graph& from) : copies_(from.size()) { graph_.reserve(from.size()); }

  Graph& graph() { return graph_; }
  const Graph& graph() const { return graph_; }
  Graph finish() && { return std::move(graph_); }

  // What `old` became in the new graph. INTERNAL if it was left out.
  Output map(Output old) const;
  std::vector<Output> inputs_of(const Node& old) const;
  // Without repetitions.
  std::vector<Node*> control_inputs_of(const Node& old) const;

  // Copies the node with its mapped inputs.
  Node& copy(const Node& old);
  // Copies the node with these inputs, of the new graph.
  Node& copy(const Node& old, std::vector<Output> inputs);
  // Users of the old node's outputs get `outputs`; those that waited for it by a control edge wait
  // for `signals`.
  void replace(const Node& old, std::vector<Output> outputs, std::vector<Node*> signals);

 private:
  struct Replacement {
    std::vector<Output> outputs;
    std::vector<Node*> signals;
  };

  Graph graph_;
  std::vector<Node*> copies_;                          // by old id; null: replaced or left out
  std::unordered_map<int, Replacement> replacements_;  // by old id
};

}  // namespace leat
