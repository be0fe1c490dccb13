// Nodes of a graph once more, with other inputs: what calls of a function and the micro-batches of
// a pipeline are made of.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

#include "graph/graph.h"

namespace leat {

// What makes state when it runs first (variables, queues, tables), not a value. Copies share it.
bool is_state(const Node& node);

// What `results` need, themselves included, in the order in which they were made: nodes from
// `first` on that are no state. With the NextIterations of loops.
std::vector<const Node*> needed_by(const std::vector<Output>& results, size_t first);

class NodeCopies {
 public:
  using Rename = std::function<std::string(const std::string& name)>;

  // For copies of `nodes`; `rename` makes the name of a copy, which must be free.
  NodeCopies(Graph& graph, const std::vector<const Node*>& nodes, Rename rename);

  // Copies get `to` as an input instead of `from`.
  void replace(Output from, Output to);
  // Copies a node with its attributes and location. Inputs are what stands for them: copies of
  // nodes that were copied before, else the nodes themselves. It runs after `after`, too. The
  // device request of the node wins over `device`.
  Node& copy(const Node& node, const std::vector<Node*>& after = {}, const DeviceName& device = {});
  // What stands for an Output: its copy, what replaces it, or itself.
  Output of(Output output) const;

 private:
  Node* of(Node* node) const;
  AttrMap renamed(const AttrMap& attrs) const;

  Graph& graph_;
  Rename rename_;
  std::unordered_set<std::string> names_;  // of the nodes that are copied
  std::unordered_map<const Node*, Node*> copies_;
  std::map<std::pair<const Node*, int>, Output> replaced_;
};

}  // namespace leat
