#include "distributed/session_graph.h"

#include <sstream>

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
  last_used_ = std::chrono::steady_clock::now();
  if (graph_ != nullptr) return graph_;
  auto graph = std::make_shared<Graph>();
  from_graph_def(packed_.graph_def, *graph, {.allow_internal = false});  // remarks: said before
  std::istringstream placed(packed_.placed);
  std::string name, device, reason;
  while (std::getline(placed, name, '\0') && std::getline(placed, device, '\0') &&
         std::getline(placed, reason, '\0')) {
    Node& node = *graph->find(name);
    node.assigned_device = DeviceName::parse(device);
    node.placement_reason = reason;
  }
  graph_ = std::move(graph);
  packed_ = {};
  return graph_;
}

void SessionGraph::set(std::shared_ptr<const Graph> graph) {
  std::lock_guard lock(mutex_);
  last_used_ = std::chrono::steady_clock::now();
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
    if (node->assigned_device.is_empty()) continue;
    for (const std::string& text :
         {node->name, node->assigned_device.to_string(), node->placement_reason}) {
      packed_.placed.append(text.c_str(), text.size() + 1);
    }
  }
  packed_.placed.shrink_to_fit();
  graph_.reset();
}

std::chrono::nanoseconds SessionGraph::unused() const {
  std::lock_guard lock(mutex_);
  return std::chrono::steady_clock::now() - last_used_;
}

bool SessionGraph::is_packed() const {
  std::lock_guard lock(mutex_);
  return graph_ == nullptr;
}

}  // namespace leat
