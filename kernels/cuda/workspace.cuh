// Parts of a kernel's workspace.
#pragma once

#include <cstddef>

namespace leat::cuda {

// So many bytes, and as many more as the next part needs to start at a multiple of 256.
inline size_t aligned(size_t bytes) { return (bytes + 255) / 256 * 256; }

}  // namespace leat::cuda
