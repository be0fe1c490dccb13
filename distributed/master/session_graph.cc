#include "distributed/master/session_graph.h"

#include <zlib.h>

#include <map>
#include <sstream>

#include "core/memory/lasting_memory.h"
#include "core/tensor.h"
#include "graph/import/graph_def.h"

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

// The text repeats itself: a tenth of it remains.
std::string compressed(const std::string& bytes) {
  std::string out(compressBound(bytes.size()), '\0');
  uLongf size = out.size();
  const int result = compress2(reinterpret_cast<Bytef*>(out.data()), &size,
                               reinterpret_cast<const Bytef*>(bytes.data()), bytes.size(), 1);
  if (result != Z_OK) throw std::bad_alloc();
  return std::string(out, 0, size);
}

std::string uncompressed(const std::string& bytes, size_t size) {
  std::string out(size, '\0');
  uLongf got = size;
  const int result = uncompress(reinterpret_cast<Bytef*>(out.data()), &got,
                                reinterpret_cast<const Bytef*>(bytes.data()), bytes.size());
  if (result == Z_MEM_ERROR) throw std::bad_alloc();
  check_internal(result == Z_OK && got == size, "a compressed graph cannot be decompressed");
  return out;
}

}  // namespace

std::shared_ptr<const Graph> SessionGraph::get() {
  std::lock_guard lock(mutex_);
  last_used_ = std::chrono::steady_clock::now();
  if (graph_ != nullptr) return graph_;
  const std::string bytes =
      uncompressed(packed_.bytes, packed_.graph_def_size + packed_.placed_size);
  const LastingMemory::Scope for_graph;
  auto graph = std::make_shared<Graph>();
  // What it has to remark was said before.
  from_graph_def(std::string_view(bytes).substr(0, packed_.graph_def_size), *graph,
                 {.allow_internal = false});
  std::istringstream placed(bytes.substr(packed_.graph_def_size));
  std::map<std::string, Shared<DeviceName>> devices;  // of many nodes
  std::string name, device, reason;
  while (std::getline(placed, name, '\0') && std::getline(placed, device, '\0') &&
         std::getline(placed, reason, '\0')) {
    Node& node = *graph->find(name);
    const auto [known, is_new] = devices.try_emplace(device);
    if (is_new) known->second = DeviceName::parse(device);
    node.assigned_device = known->second;
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

void SessionGraph::pack() try {
  std::lock_guard lock(mutex_);
  if (graph_ == nullptr || graph_->size() == 0 || constant_bytes(*graph_) > most_constant_bytes)
    return;
  // Who still works on it keeps it in memory.
  if (graph_.use_count() > 1) return;
  std::string bytes = to_graph_def(*graph_);
  const size_t graph_def_size = bytes.size();
  for (const auto& node : graph_->nodes()) {
    if (node->assigned_device->is_empty()) continue;
    for (const std::string& text :
         {node->name, node->assigned_device->to_string(), *node->placement_reason}) {
      bytes.append(text.c_str(), text.size() + 1);
    }
  }
  packed_ = {compressed(bytes), graph_def_size, bytes.size() - graph_def_size};
  graph_.reset();
} catch (const std::exception&) {  // no memory, or nodes that cannot be written: they stay
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
