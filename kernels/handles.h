// Handles on state as elements of a tensor, for QueueBase.from_list: Pack puts queues side by side,
// Gather takes the one whose number a step computes.
#pragma once

#include <vector>

#include "core/kernel.h"

namespace leat {

// Pack's kernels, and one for handles on queues and other state (not on variables).
std::vector<Kernel> and_pack_handles(std::vector<Kernel> kernels);
// The same for Gather and GatherV2, of a vector of handles.
std::vector<Kernel> and_gather_handles(std::vector<Kernel> kernels);

}  // namespace leat
