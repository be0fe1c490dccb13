// The values last seen under the most recent ids. All its memory is allocated at the start: a task
// that has run ten thousand steps holds no more than a fresh one, and no small long-lived blocks
// lie between the big short-lived values of steps.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

namespace leat {

// Ids may be arbitrary numbers. Not thread-safe.
template <class Value>
class RecentTable {
 public:
  explicit RecentTable(size_t capacity)
      : capacity_(capacity), entries_(capacity), slots_(std::bit_ceil(2 * capacity)) {}

  Value* find(uint64_t id) {
    const uint32_t at = slots_[slot_of(id)];
    return at == 0 ? nullptr : &entries_[at - 1].value;
  }
  const Value* find(uint64_t id) const { return const_cast<RecentTable*>(this)->find(id); }
  bool contains(uint64_t id) const { return find(id) != nullptr; }

  // Evicts the oldest entry if full. False, and no change, if the id exists.
  bool insert(uint64_t id, Value value) {
    if (contains(id)) return false;
    const size_t at = inserted_ % capacity_;
    if (inserted_ >= capacity_) forget(entries_[at].id);
    entries_[at] = {id, std::move(value)};
    slots_[slot_of(id)] = static_cast<uint32_t>(at + 1);
    ++inserted_;
    return true;
  }

  // Calls f(id, value) for each entry.
  template <class F>
  void for_each(F f) const {
    const size_t count = inserted_ < capacity_ ? inserted_ : capacity_;
    for (size_t i = 0; i < count; ++i) f(entries_[i].id, entries_[i].value);
  }

 private:
  struct Entry {
    uint64_t id = 0;
    [[no_unique_address]] Value value{};
  };
  size_t home_of(uint64_t id) const {
    return (id * 0x9E3779B97F4A7C15u) >> 32 & (slots_.size() - 1);
  }
  size_t next(size_t slot) const { return (slot + 1) & (slots_.size() - 1); }
  // The slot of the id, or the free slot for it. There is one: half of the slots are free.
  size_t slot_of(uint64_t id) const {
    size_t slot = home_of(id);
    while (slots_[slot] != 0 && entries_[slots_[slot] - 1].id != id) slot = next(slot);
    return slot;
  }
  // Moves entries that were pushed past the freed slot back to it (Knuth, TAOCP 6.4, algorithm R).
  void forget(uint64_t id) {
    size_t free = slot_of(id);
    for (size_t slot = next(free); slots_[slot] != 0; slot = next(slot)) {
      const size_t home = home_of(entries_[slots_[slot] - 1].id);
      const bool is_between =
          free <= slot ? free < home && home <= slot : free < home || home <= slot;
      if (is_between) continue;
      slots_[free] = slots_[slot];
      free = slot;
    }
    slots_[free] = 0;
  }

  const size_t capacity_;
  size_t inserted_ = 0;
  std::vector<Entry> entries_;   // a ring
  std::vector<uint32_t> slots_;  // open addressing: 1 + position in the ring, 0 = free
};

}  // namespace leat
