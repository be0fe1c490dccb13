// Host memory that a device reads and writes by itself: copies from and to it need no other buffer
// in between.
#pragma once

#include <cstddef>
#include <memory>

#include "core/device.h"

namespace leat {

// What a device that has such memory is, too.
class HasPinnedMemory {
 public:
  virtual ~HasPinnedMemory() = default;
  // Scarce: give it back soon. RESOURCE_EXHAUSTED if there is none.
  virtual std::shared_ptr<Buffer> allocate_pinned(size_t bytes) = 0;
};

// Host memory for a copy from or to `device`: pinned, if it has such.
inline std::shared_ptr<Buffer> allocate_for_copy(Device& device, size_t bytes) {
  auto* const with_pinned = dynamic_cast<HasPinnedMemory*>(&device);
  return with_pinned != nullptr ? with_pinned->allocate_pinned(bytes) : Buffer::allocate(bytes);
}

}  // namespace leat
