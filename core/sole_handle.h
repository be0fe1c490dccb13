// Do I hold a shared object alone, so that I may change it?
#pragma once

#include <atomic>
#include <memory>

namespace leat {

// True if this is the only handle. The effects of former handles on the object are then visible.
template <class T>
bool is_sole_handle(const std::shared_ptr<T>& handle) {
  if (handle.use_count() != 1) return false;
#ifdef __SANITIZE_THREAD__
  // TSan does not understand fences, but it sees a counted copy as an acquire.
  const std::shared_ptr<T> copy = handle;
#else
  std::atomic_thread_fence(std::memory_order_acquire);
#endif
  return true;
}

}  // namespace leat
