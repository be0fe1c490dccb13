// Which kernels there are: in this process for the many nodes of a graph, and in another process.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "graph/graph.h"

namespace leat {

// Caches answers: most nodes are of few ops and share their attributes. Valid until an attribute of
// the graph changes.
class KernelLookup {
 public:
  const Kernel* operator()(const Node& node, DeviceType device) {
    const void* attrs = node.attrs.empty() ? nullptr : &*node.attrs.begin();  // where they are
    const size_t hash = reinterpret_cast<uintptr_t>(node.op) / sizeof(OpDef) * 31 +
                        reinterpret_cast<uintptr_t>(attrs) / 64 + static_cast<size_t>(device);
    Answer& last = answers_[hash % answers_.size()];
    if (last.op != node.op || last.attrs != attrs || last.device != device)
      last = {node.op, attrs, device, find_kernel(*node.op, node.attrs, device)};
    return last.kernel;
  }

 private:
  struct Answer {
    const OpDef* op = nullptr;
    const void* attrs = nullptr;
    DeviceType device = DeviceType::cpu;
    const Kernel* kernel = nullptr;
  };
  std::array<Answer, 256> answers_;
};

// The kernels that a process has for one type of device, by op: the types that each one takes.
using KernelTypes = std::vector<TypeConstraint>;
using KernelTable = std::map<std::string, std::vector<KernelTypes>, std::less<>>;
bool are_equal(const KernelTable& a, const KernelTable& b);

// This process's own.
KernelTable kernel_table(DeviceType device);
// The first kernel of the table that fits the node, or null.
const KernelTypes* find_kernel(const KernelTable& table, const Node& node);

}  // namespace leat
