// Types shared by the placer (placer.cc) and its errors (placement_errors.h).
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "graph/kernel_lookup.h"

namespace leat {

// Sets of kinds of device.
inline unsigned bit(DeviceType type) { return 1u << static_cast<unsigned>(type); }
// The kinds that have a kernel for the node.
unsigned kernel_types(const Node& node, KernelLookup& find_kernel);
inline unsigned kernel_types(const Node& node) {
  KernelLookup find_kernel;
  return kernel_types(node, find_kernel);
}

struct PlacementError {
  std::string node;  // its name
  std::string why;
};

// The requests of a colocation set, and where it may go.
struct PlacementSet {
  std::vector<Node*> nodes;               // by id
  Shared<DeviceName> request;             // merged
  Node* asker = nullptr;                  // has the strongest request
  bool is_resource = false;               // the asker is a variable or resource of the set
  unsigned types = ~0u;                   // kinds of device with kernels for all
  Node* pinned = nullptr;                 // a node that already has its device
  std::string relaxed;                    // what soft placement dropped: the reason's tail
  std::optional<PlacementError> failure;  // the first contradiction
};

}  // namespace leat
