// Memory for blocks of one size, apart from malloc's heap.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <mutex>

namespace leat {

// Thread-safe. Allocates nothing itself and needs no constructor to have run, so malloc may use it
// from its first call on.
template <size_t slot_bytes, size_t slot_count>
class Slots {
 public:
  static constexpr size_t most = slot_bytes;
  static constexpr size_t slots = slot_count;
  static_assert(slot_bytes % 4096 == 0 && slot_count < UINT16_MAX);

  constexpr Slots() = default;
  Slots(const Slots&) = delete;

  // `most` bytes, uninitialised, page-aligned: the slot that was given back last. Null if there is
  // none.
  void* take();
  void give(void* data);
  bool owns(const void* data) const {
    return reinterpret_cast<uintptr_t>(data) - begin() < slots * most;
  }
  // `data` must be in one of its slots.
  size_t index_of(const void* data) const {
    return (reinterpret_cast<uintptr_t>(data) - begin()) / most;
  }
  char* slot(size_t index) const { return reinterpret_cast<char*>(begin()) + index * most; }
  // This many slots, taken or free, keep their memory.
  void set_reserve(size_t count);
  // The next `count` slots to be taken get memory now.
  void populate(size_t count);
  // Returns free slots beyond the reserve to the system: those unused since the last call, or all.
  void trim();
  void trim_all();

  struct Counts {
    size_t taken = 0, kept = 0;  // slots; kept: free, with their memory
  };
  Counts counts() const;

 private:
  bool reserve();
  void drop_below(size_t count);

  // All members start at 0, so that the tables cost nothing before their first use.
  static constexpr uintptr_t nowhere = UINTPTR_MAX / 2;  // above all memory
  uintptr_t begin() const { return nowhere + from_nowhere_.load(std::memory_order_relaxed); }
  std::atomic<uintptr_t> from_nowhere_{0};
  mutable std::mutex mutex_;
  bool is_reserved_ = false, is_useless_ = false;
  std::array<uint16_t, slots> free_{};  // a stack; the last given slot is at its end
  size_t free_count_ = 0;
  size_t without_memory_ = 0;  // this many at its bottom hold none
  size_t fewest_free_ = 0;     // since the last trim()
  size_t reserve_ = 0;
};

// For short-lived blocks that another library takes from malloc: gRPC reads into slices of 64 KB.
// In the heap, small long-lived blocks settle in the holes that the slices leave. The slices then
// wander through all free memory, and every page they have touched stays resident.
class SlotMemory : public Slots<size_t{68} << 10, 4'096> {
 public:
  // Blocks that fit into a slot and are not much smaller.
  static constexpr size_t least = size_t{60} << 10;

  // The instance of this process. Only malloc takes from it (tools/leat/malloc.cc).
  static SlotMemory& process();
};

}  // namespace leat
