// Which GPUs of a host each of its tasks gets, where a launcher starts several that offer GPUs.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "distributed/cluster/cluster_spec.h"

namespace leat {

// As CUDA names them: those of CUDA_VISIBLE_DEVICES, or else 0, 1, … as the driver lists them.
std::vector<std::string> gpus_of_this_host();

// The value of CUDA_VISIBLE_DEVICES for each task of `here` that offers GPUs. Every GPU goes to one
// task, and all get about as many; with more tasks than GPUs, several tasks share one. Empty if
// there is nothing to share out: at most one such task, or no GPU.
std::map<TaskName, std::string> gpu_shares(const ClusterSpec& cluster,
                                           const std::vector<TaskName>& here,
                                           const std::vector<std::string>& gpus);

}  // namespace leat
