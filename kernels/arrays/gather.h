// What a gather moves, for its kernels on either device.
#pragma once

#include "core/kernel.h"

namespace leat {

// params as [batch, outer, rows, inner], indices as [batch, count], output as [batch, outer, count,
// inner].
struct GatherExtents {
  int64_t batch, outer, rows, inner, count;
};

// Of Gather: rows of axis 0.
GatherExtents gather_extents(const KernelRequest& request);
// Of GatherV2: along the axis in input 2.
GatherExtents gather_v2_extents(const KernelRequest& request);
// Of ResourceGather: along the first axis behind batch_dims.
GatherExtents resource_gather_extents(const KernelRequest& request);

}  // namespace leat
