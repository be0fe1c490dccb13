// Where the nodes of a gradient go.
#pragma once

#include <string_view>
#include <vector>

#include "graph/graph.h"

namespace leat {

// Nodes made meanwhile get the scope, device, colocation and line of a node that is there already,
// and lie in the branches of these pivots (conditions.h).
class Beside {
 public:
  Beside(Graph& graph, const Node& node, std::string_view scope, const std::vector<Node*>& pivots);
  ~Beside();
  Beside(const Beside&) = delete;

 private:
  Graph& graph_;
  const Node& node_;
  NameScope name_;
  Graph::Scopes outer_;
  size_t first_;
};

// What a gradient of x is where nothing depends on x. x may be a handle: of a resource, that of
// what is read from it, of this dtype.
Output zeros_for(Output x, DType dtype);

}  // namespace leat
