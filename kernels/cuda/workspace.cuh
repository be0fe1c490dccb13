// Parts of a kernel's workspace.
#pragma once

#include <cstddef>
#include <cstdint>

namespace leat::cuda {

// So many bytes, and as many more as the next part needs to start at a multiple of 256.
inline size_t aligned(size_t bytes) { return (bytes + 255) / 256 * 256; }

// The same of floats.
inline int64_t aligned_floats(int64_t count) { return (count + 63) / 64 * 64; }

}  // namespace leat::cuda
