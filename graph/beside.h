// The scopes of a gradient's nodes.
#pragma once

#include <string_view>
#include <vector>

#include "graph/graph.h"

namespace leat {

// While it lives, new nodes get this name scope, the device, colocation and line of `node`, and lie
// in the branches of these pivots (conditions.h).
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

// The gradient of x where nothing depends on x. x may be a handle; for a resource it is the
// gradient of the value read from it, of this dtype.
Output zeros_for(Output x, DType dtype);

}  // namespace leat
