#include "core/memory/slot_memory.h"

#include <sys/mman.h>

#include <algorithm>

#include "core/memory/lasting_memory.h"

namespace leat {

// Call with the lock held. False if there is no address space, now and in later calls.
template <size_t slot_bytes, size_t slot_count>
bool Slots<slot_bytes, slot_count>::reserve() {
  if (is_reserved_ || is_useless_) return is_reserved_;
  void* const data = mmap(nullptr, slots * most, PROT_READ | PROT_WRITE,
                          MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  is_useless_ = data == MAP_FAILED;
  if (is_useless_) return false;
  madvise(data, slots * most, MADV_NOHUGEPAGE);  // most of them are never touched
  is_reserved_ = true;
  from_nowhere_ = reinterpret_cast<uintptr_t>(data) - nowhere;
  for (size_t i = 0; i < slots; ++i) free_[i] = static_cast<uint16_t>(slots - 1 - i);
  free_count_ = without_memory_ = fewest_free_ = slots;
  return true;
}

template <size_t slot_bytes, size_t slot_count>
void* Slots<slot_bytes, slot_count>::take() {
  std::lock_guard lock(mutex_);
  if (!reserve() || free_count_ == 0) return nullptr;
  --free_count_;
  without_memory_ = std::min(without_memory_, free_count_);
  fewest_free_ = std::min(fewest_free_, free_count_);
  return slot(free_[free_count_]);
}

template <size_t slot_bytes, size_t slot_count>
void Slots<slot_bytes, slot_count>::give(void* data) {
  const auto index = static_cast<uint16_t>(index_of(data));
  std::lock_guard lock(mutex_);
  free_[free_count_++] = index;
}

template <size_t slot_bytes, size_t slot_count>
void Slots<slot_bytes, slot_count>::set_reserve(size_t count) {
  std::lock_guard lock(mutex_);
  reserve_ = std::min(count, slots);
}

template <size_t slot_bytes, size_t slot_count>
void Slots<slot_bytes, slot_count>::populate(size_t count) {
  constexpr size_t page = 4096;
  std::lock_guard lock(mutex_);
  if (!reserve()) return;
  while (without_memory_ > free_count_ - std::min(count, free_count_)) {
    char* const data = slot(free_[--without_memory_]);
    for (size_t at = 0; at < most; at += page) *static_cast<volatile char*>(data + at) = 0;
  }
}

// The memory of the lowest so many on the stack, but for the reserve. With the lock held.
template <size_t slot_bytes, size_t slot_count>
void Slots<slot_bytes, slot_count>::drop_below(size_t count) {
  for (count = std::min(count, slots - reserve_); without_memory_ < count; ++without_memory_)
    madvise(slot(free_[without_memory_]), most, MADV_DONTNEED);
}

template <size_t slot_bytes, size_t slot_count>
void Slots<slot_bytes, slot_count>::trim() {
  std::lock_guard lock(mutex_);
  drop_below(fewest_free_);
  fewest_free_ = free_count_;
}

template <size_t slot_bytes, size_t slot_count>
void Slots<slot_bytes, slot_count>::trim_all() {
  std::lock_guard lock(mutex_);
  drop_below(free_count_);
}

template <size_t slot_bytes, size_t slot_count>
typename Slots<slot_bytes, slot_count>::Counts Slots<slot_bytes, slot_count>::counts() const {
  std::lock_guard lock(mutex_);
  if (!is_reserved_) return {};
  return {slots - free_count_, free_count_ - without_memory_};
}

template class Slots<SlotMemory::most, SlotMemory::slots>;
template class Slots<LastingMemory::page_bytes, LastingMemory::pages>;

SlotMemory& SlotMemory::process() {
  static constinit SlotMemory memory;
  return memory;
}

}  // namespace leat
