// The extents of a gather, for its kernels on both devices.
#pragma once

#include "core/kernel.h"

namespace leat {

// params as [batch, outer, rows, inner], indices as [batch, count], output as [batch, outer, count,
// inner].
struct GatherExtents {
  int64_t batch, outer, rows, inner, count;
};

// For Gather: rows of axis 0.
GatherExtents gather_extents(const KernelRequest& request);
// For GatherV2: along the axis in input 2.
GatherExtents gather_v2_extents(const KernelRequest& request);
// For ResourceGather: along the first axis after batch_dims.
GatherExtents resource_gather_extents(const KernelRequest& request);

}  // namespace leat
