// Types shared by the placer (placer.cc) and its errors (placement_errors.h).
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "graph/kernel_lookup.h"
#include "graph/passes/pipeline.h"

namespace leat {

// Sets of types of device.
inline unsigned bit(DeviceType type) { return 1u << static_cast<unsigned>(type); }
// The types that have a kernel for the node in this process.
unsigned kernel_types(const Node& node, KernelLookup& find_kernel);
inline unsigned kernel_types(const Node& node) {
  KernelLookup find_kernel;
  return kernel_types(node, find_kernel);
}

// Devices of one kind have the same kernels. A set of kinds has a bit for each: those of CPUs and
// of GPUs with this process's kernels are bit(type); another process's GPUs have bits of their own.
class DeviceKinds {
 public:
  explicit DeviceKinds(const std::vector<DeviceSpec>& devices);

  bool has_gpus() const { return has_gpus_; }
  unsigned of(const DeviceSpec& device) const;  // one bit
  // The kinds that have a kernel for the node, or leave it to the host (graph/host_values.h). Those
  // of a `_Loop` have kernels for all that it runs; one that only counts is for CPUs.
  unsigned with_kernels_for(const Node& node) const;
  // The same for a node of a loop. A loop in it may only count.
  unsigned with_kernels_in_loop(const Node& node) const;
  // The first node of a `_Loop` that no GPU can run: "Op 'name'"; empty if there is none.
  std::string obstacle_in(const Node& loop) const;

 private:
  unsigned of_loop(const Node& loop) const;
  unsigned with_kernels_for_parts(const Node& loop) const;

  std::vector<std::shared_ptr<const KernelTable>> tables_;  // that differ
  std::map<const KernelTable*, unsigned> bits_;             // of the devices' tables
  bool has_gpus_ = false;
  mutable KernelLookup find_kernel_;
  mutable std::map<const Node*, unsigned> loops_;  // known answers
};

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
  unsigned kinds = ~0u;                   // of devices with kernels for all that must be there
  Node* pinned = nullptr;                 // a node that already has its device
  std::string relaxed;                    // what soft placement dropped: the reason's tail
  std::optional<PlacementError> failure;  // the first contradiction
};

}  // namespace leat
