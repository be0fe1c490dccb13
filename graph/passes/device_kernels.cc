#include "graph/passes/device_kernels.h"

#include <algorithm>

namespace leat {
namespace {

bool has_gpu_kernel(const DeviceSpec& gpu, std::string_view op) {
  if (gpu.kernels != nullptr) return gpu.kernels->contains(op);
  const std::vector<Kernel>& own = op_named(op).kernels;
  return std::any_of(own.begin(), own.end(),
                     [](const Kernel& kernel) { return kernel.device == DeviceType::gpu; });
}

}  // namespace

bool has_kernel(const DeviceSpec& device, const Node& node) {
  if (device.kernels != nullptr) return find_kernel(*device.kernels, node) != nullptr;
  return find_kernel(*node.op, node.attrs, device.type) != nullptr;
}

std::set<std::string> gpus_with_kernels(const std::vector<DeviceSpec>& devices,
                                        std::initializer_list<std::string_view> ops) {
  std::set<std::string> out;
  for (const DeviceSpec& device : devices) {
    const bool has_all = device.type == DeviceType::gpu &&
                         std::all_of(ops.begin(), ops.end(), [&](std::string_view op) {
                           return has_gpu_kernel(device, op);
                         });
    if (has_all) out.insert(device.name.to_string());
  }
  return out;
}

}  // namespace leat
