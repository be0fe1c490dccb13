// Why nodes cannot be placed: which requests contradict each other and what ties their nodes, or
// which kernels exist.
#pragma once

#include <string>
#include <vector>

#include "graph/passes/colocation.h"
#include "graph/passes/placement_set.h"
#include "graph/passes/placer.h"

namespace leat {

class PlacementErrors {
 public:
  // All but the lost devices are kept by reference.
  PlacementErrors(const std::vector<DeviceSpec>& devices, std::vector<DeviceSpec> lost,
                  const DeviceKinds& kinds, const Colocation& ties)
      : devices_(devices), lost_(std::move(lost)), kinds_(kinds), ties_(ties) {}

  // `node` and the set's asker request devices that exclude each other.
  PlacementError opposite_requests(const PlacementSet& set, const Node& node) const;
  // `node` already has another device than the set's pinned node.
  PlacementError opposite_devices(const PlacementSet& set, const Node& node) const;
  // The session no longer has the pinned node's device.
  PlacementError device_is_gone(const PlacementSet& set) const;
  // A node of the set has no kernel for the kind of device of its pinned node.
  PlacementError no_kernel_on(const DeviceSpec& device, const PlacementSet& set) const;
  // No device matches the request and has kernels for all.
  PlacementError no_device(const PlacementSet& set) const;

 private:
  std::string device_list() const;

  const std::vector<DeviceSpec>& devices_;
  const std::vector<DeviceSpec> lost_;
  const DeviceKinds& kinds_;
  const Colocation& ties_;
};

}  // namespace leat
