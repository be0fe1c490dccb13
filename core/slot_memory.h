// Memory for short-lived blocks of one size that another library takes from malloc, apart from
// malloc's heap: gRPC reads into slices of 64 KB. In the heap what is small and lives long settles
// in the holes they leave, so that they wander through all that is free there, and every page that
// they have touched stays resident.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <mutex>

namespace leat {

// Thread-safe. Allocates nothing itself and needs no constructor to have run: malloc may use it
// from the first call on.
class SlotMemory {
 public:
  // What fits into a slot, and is not much smaller.
  static constexpr size_t least = size_t{60} << 10, most = size_t{68} << 10;
  static constexpr size_t slots = 4'096;

  constexpr SlotMemory() = default;
  SlotMemory(const SlotMemory&) = delete;

  // That of this process, of which malloc takes (tools/leat/malloc.cc). Nothing else does.
  static SlotMemory& process();

  // `most` bytes, uninitialised, on a page's border: the slot that was given back last. Null if
  // there is none.
  void* take();
  void give(void* data);
  bool owns(const void* data) const {
    return reinterpret_cast<uintptr_t>(data) - begin_.load(std::memory_order_relaxed) <
           slots * most;
  }
  // Gives back to the system what has not been used since the last call.
  void trim();

  struct Counts {
    size_t taken = 0, kept = 0;  // slots; kept: free, with their memory
  };
  Counts counts() const;

 private:
  bool reserve();
  char* slot(uint16_t index) const;

  std::atomic<uintptr_t> begin_{UINTPTR_MAX / 2};  // before the first take(): owns nothing
  mutable std::mutex mutex_;
  bool is_reserved_ = false, is_useless_ = false;
  std::array<uint16_t, slots> free_{};  // a stack, the slot that was given last at its end
  size_t free_count_ = 0;
  size_t without_memory_ = 0;  // so many at its bottom hold none
  size_t fewest_free_ = 0;     // since the last trim()
};

}  // namespace leat
