#include "distributed/session_graph.h"

#include "core/tensor.h"
#include "graph/graph_def.h"

namespace leat {
namespace {

constexpr size_t most_constant_bytes = size_t{16} << 20;

size_t constant_bytes(const Graph& graph) {
  size_t out = 0;
  for (const auto& node : graph.nodes()) {
    if (node->is("Const")) out += node->attr<Tensor>("value").bytes();
  }
  return out;
}

}  // namespace

std::shared_ptr<const Graph> SessionGraph::get() {
  std::lock_guard lock(mutex_);
  if (graph_ != nullptr) return graph_;
  auto graph = std::make_shared<Graph>();
  from_graph_def(packed_.graph_def, *graph, {.allow_internal = false});  // remarks: said before
  for (Placed& placed : packed_.placed) {
    Node& node = *graph->find(placed.node);
    node.assigned_device = placed.device;
    node.placement_reason = std::move(placed.reason);
  }
  graph_ = std::move(graph);
  packed_ = {};
  return graph_;
}

void SessionGraph::set(std::shared_ptr<const Graph> graph) {
  std::lock_guard lock(mutex_);
  graph_ = std::move(graph);
  packed_ = {};
}

void SessionGraph::pack() {
  std::lock_guard lock(mutex_);
  if (graph_ == nullptr || graph_->size() == 0 || constant_bytes(*graph_) > most_constant_bytes)
    return;
  packed_.graph_def = to_graph_def(*graph_);
  packed_.graph_def.shrink_to_fit();
  for (const auto& node : graph_->nodes()) {
    if (!node->assigned_device.is_empty())
      packed_.placed.push_back({node->name, node->assigned_device, node->placement_reason});
  }
  graph_.reset();
}

bool SessionGraph::is_packed() const {
  std::lock_guard lock(mutex_);
  return graph_ == nullptr;
}

}  // namespace leat
