// How many bytes a tensor has, for shapes that nobody has checked yet.
#pragma once

#include <cstddef>

#include "core/dtype.h"
#include "core/shape.h"

namespace leat {

// Of a complete shape. RESOURCE_EXHAUSTED if no machine has so many: sums of thousands of such
// sizes fit into 64 bits.
size_t byte_size(DType dtype, const Shape& shape);

}  // namespace leat
