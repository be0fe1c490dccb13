// Handles to state as elements of a tensor, for QueueBase.from_list: Pack stacks queues, and Gather
// selects the one whose index a step computes.
#pragma once

#include <vector>

#include "core/kernel.h"

namespace leat {

// Pack's kernels, plus one for handles to queues and other state (not to variables).
std::vector<Kernel> and_pack_handles(std::vector<Kernel> kernels);
// The same for Gather and GatherV2, from a vector of handles.
std::vector<Kernel> and_gather_handles(std::vector<Kernel> kernels);

}  // namespace leat
