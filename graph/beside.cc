#include "graph/beside.h"

#include "graph/ops.h"

namespace leat {

Beside::Beside(Graph& graph, const Node& node, std::string_view scope,
               const std::vector<Node*>& pivots)
    : graph_(graph),
      node_(node),
      name_(graph, scope),
      outer_(graph.scopes()),
      first_(graph.size()) {
  Graph::Scopes& scopes = graph.scopes();
  scopes.device = node.requested_device;
  scopes.device_function = nullptr;
  scopes.colocate_with.clear();
  if (node.view().has("_class")) {
    for (const std::string& entry : node.attr<std::vector<std::string>>("_class")) {
      if (entry.starts_with("loc:@")) scopes.colocate_with.push_back(entry.substr(5));
    }
  }
  scopes.control_inputs.insert(scopes.control_inputs.end(), pivots.begin(), pivots.end());
}

Beside::~Beside() {
  graph_.scopes() = outer_;
  for (size_t i = first_; i < graph_.size(); ++i) graph_.nodes()[i]->location = node_.location;
}

Output zeros_for(Output x, DType dtype) {
  if (x.dtype() != DType::resource) return op("ZerosLike", {x});
  Graph& graph = x.graph();
  if (x.shape().is_complete()) return zeros(graph, x.shape(), dtype);
  return zeros(graph, op("VariableShape", {x}), dtype);
}

}  // namespace leat
