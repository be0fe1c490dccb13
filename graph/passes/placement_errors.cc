#include "graph/passes/placement_errors.h"

#include <algorithm>
#include <map>

namespace leat {
namespace {

const Node& node_without(const PlacementSet& set, const DeviceKinds& kinds, unsigned kind) {
  for (const Node* node : set.nodes) {
    if ((kinds.with_kernels_for(*node) & kind) == 0) return *node;
  }
  return *set.nodes.front();
}

// One line per op of the set.
std::string kernels_of(const PlacementSet& set) {
  std::map<std::string, const Node*> ops;
  for (const Node* node : set.nodes) ops.emplace(node->op->name, node);
  std::string out;
  for (const auto& [name, node] : ops) {
    out += concat("\n  kernels of ", name, ": ", describe_kernels(*node->op));
    for (const AttrDef& attr : node->op->schema.attrs) {
      if (attr.kind == "type")
        out += concat("; here ", attr.name, " = ", node->attr<DType>(attr.name));
    }
  }
  return out;
}

std::string location_prefix(const Node& node) {
  if (!node.location.is_known()) return "it ";
  return concat("it (", node.location, ") ");
}

// "\n  nodes that must be together: a (VariableV2, requests /gpu:0), …"; empty for one node.
std::string members(const PlacementSet& set) {
  if (set.nodes.size() < 2) return "";
  std::string out = "\n  nodes that must be together:";
  for (size_t i = 0; i < set.nodes.size() && i < 10; ++i) {
    const Node& node = *set.nodes[i];
    out += concat(i == 0 ? " " : ", ", node.name, " (", node.op->name);
    if (!node.requested_device->is_empty()) out += concat(", requests ", node.requested_device);
    out += ")";
  }
  if (set.nodes.size() > 10) out += concat(", and ", set.nodes.size() - 10, " more");
  return out;
}

}  // namespace

std::string PlacementErrors::device_list() const {
  std::string out;
  for (size_t i = 0; i < devices_.size() && i < 16; ++i)
    out += concat(i == 0 ? "" : ", ", devices_[i].name);
  if (devices_.size() > 16) out += concat(", and ", devices_.size() - 16, " more");
  for (const DeviceSpec& device : lost_)
    out += concat("\n  out of use: ", device.name, ": ", device.problem);
  return out;
}

PlacementError PlacementErrors::opposite_requests(const PlacementSet& set, const Node& node) const {
  return {node.name,
          concat("it requests ", node.requested_device, ", but it must be on one device with ",
                 set.asker->name, ", which requests ", set.asker->requested_device,
                 ".\n  tied by: ", ties_.chain(*set.asker, node))};
}

PlacementError PlacementErrors::opposite_devices(const PlacementSet& set, const Node& node) const {
  return {node.name,
          concat("it is on ", node.assigned_device, " already, but it must be on one device with ",
                 set.pinned->name, ", which is on ", set.pinned->assigned_device,
                 ".\n  tied by: ", ties_.chain(*set.pinned, node))};
}

PlacementError PlacementErrors::device_is_gone(const PlacementSet& set) const {
  return {set.pinned->name, concat("it is on ", set.pinned->assigned_device,
                                   ", which is no longer available; devices: ", device_list())};
}

PlacementError PlacementErrors::no_kernel_on(const DeviceSpec& device,
                                             const PlacementSet& set) const {
  const Node& lacking = node_without(set, kinds_, kinds_.of(device));
  std::string why = concat(lacking.op->name, " has no kernel for its types on ", device.name);
  if (&lacking != set.pinned) {
    why +=
        concat(", where ", set.pinned->name, " is\n  tied by: ", ties_.chain(*set.pinned, lacking));
  }
  return {lacking.name, why + kernels_of(set) + "\n  devices: " + device_list()};
}

PlacementError PlacementErrors::no_device(const PlacementSet& set) const {
  const bool matches_any =
      std::any_of(devices_.begin(), devices_.end(),
                  [&](const DeviceSpec& device) { return set.request->matches(device.name); });
  const Node* asker = set.asker != nullptr ? set.asker : set.nodes.front();
  if (!matches_any) {
    return {asker->name,
            concat(location_prefix(*asker), "requests ", set.request,
                   ", and no device matches that", members(set), "\n  devices: ", device_list())};
  }
  const Node* lacking = nullptr;  // without a kernel on any of the matching devices
  for (const Node* node : set.nodes) {
    const unsigned kinds = kinds_.with_kernels_for(*node);
    const bool fits = std::any_of(devices_.begin(), devices_.end(), [&](const DeviceSpec& device) {
      return set.request->matches(device.name) && (kinds & kinds_.of(device)) != 0;
    });
    if (!fits && lacking == nullptr) lacking = node;
  }
  std::string why;
  if (lacking != nullptr) {
    why = concat(lacking->op->name, " has no kernel for its types on ",
                 set.request->is_empty() ? "any device" : set.request->to_string());
    if (lacking != asker && set.asker != nullptr) {
      why +=
          concat(", which ", asker->name, " requests\n  tied by: ", ties_.chain(*asker, *lacking));
    }
  } else {
    lacking = set.nodes.front();
    why = concat("no type of device has kernels for all nodes that must be together with it",
                 members(set));
  }
  return {lacking->name, why + kernels_of(set) + "\n  devices: " + device_list()};
}

}  // namespace leat
