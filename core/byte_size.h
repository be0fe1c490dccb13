// The size of a tensor in bytes, for shapes that nothing has checked yet.
#pragma once

#include <cstddef>

#include "core/dtype.h"
#include "core/shape.h"

namespace leat {

// The shape must be complete. RESOURCE_EXHAUSTED if the size exceeds any machine's memory. The
// limit is low enough that sums of thousands of sizes fit into 64 bits.
size_t byte_size(DType dtype, const Shape& shape);

}  // namespace leat
