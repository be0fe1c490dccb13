#include "core/slot_memory.h"

#include <sys/mman.h>

#include <algorithm>

namespace leat {

SlotMemory& SlotMemory::process() {
  static constinit SlotMemory memory;
  return memory;
}

// With the lock held. False if there is no address space, now and later.
bool SlotMemory::reserve() {
  if (is_reserved_ || is_useless_) return is_reserved_;
  void* const data = mmap(nullptr, slots * most, PROT_READ | PROT_WRITE,
                          MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  is_useless_ = data == MAP_FAILED;
  if (is_useless_) return false;
  madvise(data, slots * most, MADV_NOHUGEPAGE);  // most of them are never touched
  is_reserved_ = true;
  begin_ = reinterpret_cast<uintptr_t>(data);
  for (size_t i = 0; i < slots; ++i) free_[i] = static_cast<uint16_t>(slots - 1 - i);
  free_count_ = without_memory_ = fewest_free_ = slots;
  return true;
}

char* SlotMemory::slot(uint16_t index) const {
  return reinterpret_cast<char*>(begin_.load(std::memory_order_relaxed)) + index * most;
}

void* SlotMemory::take() {
  std::lock_guard lock(mutex_);
  if (!reserve() || free_count_ == 0) return nullptr;
  --free_count_;
  without_memory_ = std::min(without_memory_, free_count_);
  fewest_free_ = std::min(fewest_free_, free_count_);
  return slot(free_[free_count_]);
}

void SlotMemory::give(void* data) {
  const uintptr_t offset = reinterpret_cast<uintptr_t>(data) - begin_;
  std::lock_guard lock(mutex_);
  free_[free_count_++] = static_cast<uint16_t>(offset / most);
}

void SlotMemory::trim() {
  std::lock_guard lock(mutex_);
  for (size_t i = without_memory_; i < fewest_free_; ++i)
    madvise(slot(free_[i]), most, MADV_DONTNEED);
  without_memory_ = std::max(without_memory_, fewest_free_);
  fewest_free_ = free_count_;
}

SlotMemory::Counts SlotMemory::counts() const {
  std::lock_guard lock(mutex_);
  if (!is_reserved_) return {};
  return {slots - free_count_, free_count_ - without_memory_};
}

}  // namespace leat
