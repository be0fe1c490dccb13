// A fused program's members, tile by tile: the kernel of each is bound for a tile of rows that
// stays in the first-level cache.
#pragma once

#include <memory>
#include <span>

#include "core/kernel.h"
#include "graph/fused.h"

namespace leat {

// A kernel with the program's inputs and outputs, for these inputs.
BoundKernel bind_tiles(std::shared_ptr<const FusedProgram> program,
                       std::span<const TensorSpec> inputs, Device& device);

}  // namespace leat
