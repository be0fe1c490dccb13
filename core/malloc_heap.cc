#include "core/malloc_heap.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <mutex>
#include <thread>

#include "core/block_memory.h"
#include "core/host_memory.h"
#include "core/lasting_memory.h"
#include "core/slot_memory.h"

#ifdef __GLIBC__  // which the headers above tell
#include <malloc.h>
#endif

namespace leat {
namespace {

#ifdef __GLIBC__
constexpr size_t end_of_heap = size_t{2} << 20;

// The end of this thread's heap gets pages.
void touch_heap() {
  if (void* volatile const data = std::malloc(end_of_heap)) {
    std::memset(data, 1, end_of_heap);
    std::free(data);
  }
}

// What the process has beside what is in use in the heap, and beside its big blocks, grows with
// what is free there. What others free while the heap is trimmed is not seen: so once more, until
// nothing changes.
class HeapTrimmer {
 public:
  void look() {
    const std::lock_guard lock(mutex_);
    const int64_t before = beside_heap();
    least_ = std::min(least_, before);
    if (is_settled_ && before - least_ <= kept_in_heaps) return;
    malloc_trim(end_of_heap);
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
  bool is_settled_ = false;
  int64_t least_ = std::numeric_limits<int64_t>::max();
};
#endif

}  // namespace

void keep_heap_ends() {
#ifdef __GLIBC__
  // Of each heap; of all but the first, malloc_trim() does not give back the end.
  mallopt(M_TRIM_THRESHOLD, 4 << 20);
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

}  // namespace leat
