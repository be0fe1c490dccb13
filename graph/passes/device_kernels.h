// Which kernels the devices of a step have: those of their own processes.
#pragma once

#include <initializer_list>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "graph/passes/pipeline.h"

namespace leat {

// One that takes the node's types.
bool has_kernel(const DeviceSpec& device, const Node& node);
// The names of the GPUs that have a kernel for each of these ops, of whatever types.
std::set<std::string> gpus_with_kernels(const std::vector<DeviceSpec>& devices,
                                        std::initializer_list<std::string_view> ops);

}  // namespace leat
