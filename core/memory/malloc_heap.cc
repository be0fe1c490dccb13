#include "core/memory/malloc_heap.h"

#include <algorithm>
#include <array>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <mutex>
#include <thread>

#include "core/memory/block_memory.h"
#include "core/memory/host_memory.h"
#include "core/memory/lasting_memory.h"
#include "core/memory/slot_memory.h"

#ifdef __GLIBC__  // which the headers above tell
#include <malloc.h>
#endif

namespace leat {
namespace {

#ifdef __GLIBC__
constexpr size_t ready_at_end = size_t{4} << 20;
constexpr int kept_at_end = 8 << 20;

// Gives pages to the end of this thread's heap: in parts, each too small for its own mapping.
void touch_heap() {
  std::array<void* volatile, 4> parts;
  constexpr size_t bytes = ready_at_end / parts.size();
  for (void* volatile& part : parts) {
    part = std::malloc(bytes);
    if (part != nullptr) std::memset(part, 1, bytes);
  }
  for (void* const part : parts) std::free(part);
}

// The process's memory beside the heap's blocks in use and the big blocks grows with what is free
// in the heap. Memory that was free at the first look stays: it is soon used again. A trim misses
// memory that others free meanwhile, so it is repeated until nothing changes.
class HeapTrimmer {
 public:
  void look() {
    const std::lock_guard lock(mutex_);
    const int64_t before = beside_heap();
    least_ = std::min(least_, before);
    if (is_settled_ && before - least_ <= kept_in_heaps) return;
    malloc_trim(ready_at_end);
    const int64_t after = beside_heap();
    is_settled_ = std::abs(before - after) < little;
    least_ = std::min(before, after);
  }

 private:
  static constexpr int64_t little = int64_t{1} << 20;
  static int64_t beside_heap() {
    const struct mallinfo2 heap = mallinfo2();
    return resident_host_memory() - static_cast<int64_t>(heap.uordblks) -
           static_cast<int64_t>(heap.hblkhd) -
           static_cast<int64_t>(BlockMemory::process().counts().bytes);
  }

  std::mutex mutex_;
  bool is_settled_ = true;
  int64_t least_ = std::numeric_limits<int64_t>::max();
};
#endif

}  // namespace

void keep_heap_ends() {
#ifdef __GLIBC__
  // Of each heap; of all but the first, malloc_trim() does not give back the end.
  mallopt(M_TRIM_THRESHOLD, kept_at_end);
  // Else it would stay at 128 KB: it no longer follows what the program frees.
  mallopt(M_MMAP_THRESHOLD, 4 << 20);
#endif
}

void prepare_heaps() {
  constexpr size_t slots = (size_t{2} << 20) / SlotMemory::most;
  constexpr size_t pages = (size_t{2} << 20) / LastingMemory::page_bytes;
  SlotMemory::process().set_reserve(2 * slots);
  SlotMemory::process().populate(slots);
  LastingMemory::process().set_reserve(pages);
  LastingMemory::process().populate(pages);
  keep_heap_ends();
#ifdef __GLIBC__
  mallopt(M_ARENA_MAX, std::max(2, static_cast<int>(std::thread::hardware_concurrency())));
  touch_heap();
  std::thread(touch_heap).join();  // in the heap that the first other thread will have
#endif
}

void trim_heaps() {
  SlotMemory::process().trim();
#ifdef __GLIBC__
  static HeapTrimmer trimmer;
  trimmer.look();
#endif
}

void give_back_free_heap() {
#ifdef __GLIBC__
  malloc_trim(0);
#endif
}

}  // namespace leat
