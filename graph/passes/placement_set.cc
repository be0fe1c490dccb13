// What the placer and its errors share: which kinds of devices can run a node.
#include "graph/passes/placement_set.h"

#include <algorithm>

#include "graph/host_values.h"
#include "graph/loops/loops.h"

namespace leat {
namespace {

// Nodes that have no kernels, because the runtime does their work. A feed goes anywhere, but the
// host holds its strings and variants.
bool is_done_by_runtime(const Node& node) {
  const bool is_branch = node.is("Switch") || node.is("RefSwitch") || node.is("Merge");
  if (!node.is("_Feed") && !is_branch) return is_loop_node(node);
  const DType dtype = node.outputs[0].dtype;
  return dtype != DType::string && (is_branch || dtype != DType::variant);
}

// What a `_Loop` runs.
std::vector<const Node*> nodes_of(const LoopParts& parts) {
  std::vector<const Node*> out;
  for (const Graph* part : {&parts.condition, &parts.body, &parts.last}) {
    for (const auto& node : part->nodes()) {
      if (!node->is("_Feed")) out.push_back(node.get());
    }
  }
  return out;
}

// Of another process's GPUs.
unsigned bit_of_table(size_t table) { return 4u << table; }

// `kernel`: the types of what a GPU has for the node, or null. Objects of the host stay there.
bool can_be_on_gpu(const Node& node, const KernelTypes* kernel) {
  return kernel != nullptr && takes_objects(*kernel, node);
}

}  // namespace

unsigned kernel_types(const Node& node, KernelLookup& find_kernel) {
  if (is_done_by_runtime(node)) return bit(DeviceType::cpu) | bit(DeviceType::gpu);
  if (node.is("_Feed") || node.is("_Loop")) return bit(DeviceType::cpu);
  const Kernel* const on_gpu = find_kernel(node, DeviceType::gpu);
  return (find_kernel(node, DeviceType::cpu) != nullptr ? bit(DeviceType::cpu) : 0) |
         (can_be_on_gpu(node, on_gpu == nullptr ? nullptr : &on_gpu->types) ? bit(DeviceType::gpu)
                                                                            : 0);
}

DeviceKinds::DeviceKinds(const std::vector<DeviceSpec>& devices) {
  for (const DeviceSpec& device : devices) {
    has_gpus_ = has_gpus_ || device.type == DeviceType::gpu;
    if (device.kernels == nullptr || bits_.contains(device.kernels.get())) continue;
    const auto same = std::find_if(tables_.begin(), tables_.end(), [&](const auto& table) {
      return are_equal(*table, *device.kernels);
    });
    bits_[device.kernels.get()] = bit_of_table(static_cast<size_t>(same - tables_.begin()));
    if (same == tables_.end()) tables_.push_back(device.kernels);
  }
}

unsigned DeviceKinds::of(const DeviceSpec& device) const {
  return device.kernels == nullptr ? bit(device.type) : bits_.at(device.kernels.get());
}

unsigned DeviceKinds::with_kernels_for(const Node& node) const {
  if (node.is("_Loop")) return of_loop(node);
  unsigned kinds = kernel_types(node, find_kernel_);
  // The host does for the GPU what only counts, or passes lists on.
  if ((kinds & bit(DeviceType::cpu)) != 0 && is_for_host(node)) return ~0u;
  for (size_t t = 0; t < tables_.size(); ++t) {
    if (is_done_by_runtime(node) || can_be_on_gpu(node, find_kernel(*tables_[t], node)))
      kinds |= bit_of_table(t);
  }
  return kinds;
}

unsigned DeviceKinds::with_kernels_in_loop(const Node& node) const {
  return node.is("_Loop") ? with_kernels_for_parts(node) : with_kernels_for(node);
}

unsigned DeviceKinds::with_kernels_for_parts(const Node& loop) const {
  unsigned kinds = ~0u;
  const LoopParts parts(loop);
  for (const Node* node : nodes_of(parts)) kinds &= with_kernels_in_loop(*node);
  return kinds | bit(DeviceType::cpu);
}

std::string DeviceKinds::obstacle_in(const Node& loop) const {
  const LoopParts parts(loop);
  for (const Node* node : nodes_of(parts)) {
    if ((with_kernels_in_loop(*node) & ~bit(DeviceType::cpu)) == 0)
      return concat(node->op->name, " '", node->name, "'");
  }
  return "";
}

unsigned DeviceKinds::of_loop(const Node& loop) const {
  if (!has_gpus_) return bit(DeviceType::cpu);
  if (const auto known = loops_.find(&loop); known != loops_.end()) return known->second;
  const std::vector<bool> on_host = loop_inputs_on_host(loop);
  const bool only_counts = std::all_of(on_host.begin(), on_host.end(), [](bool is) { return is; });
  return loops_[&loop] = only_counts ? bit(DeviceType::cpu) : with_kernels_for_parts(loop);
}

}  // namespace leat
