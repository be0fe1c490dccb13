// Memory, apart from malloc's heap, for small blocks that are made together and live long: the
// graph and the programs of a session. In the heap they would settle one by one among the
// short-lived blocks of messages, and each would keep a page alive. While a Scope is open on a
// thread, the malloc of the program `leat` takes that thread's blocks from here
// (tools/leat/malloc.cc).
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <mutex>

#include "core/memory/slot_memory.h"

namespace leat {

// Blocks of a few sizes, one size per page. Blocks taken in one scope share pages of their own. A
// free block is reused only within its scope; afterwards, a page goes back to the system once it is
// entirely free. Thread-safe. Allocates nothing itself and needs no constructor to have run.
class LastingMemory {
 public:
  static constexpr size_t most = 1'024;  // bytes per block; larger ones are malloc's
  static constexpr size_t page_bytes = 4'096, pages = 65'000;

  constexpr LastingMemory() = default;
  LastingMemory(const LastingMemory&) = delete;

  // The instance of this process. Only malloc takes from it.
  static LastingMemory& process();

  // While one is open, this thread's mallocs come from here. A nested scope is part of the outer
  // one. Costs next to nothing under another malloc.
  class Scope {
   public:
    Scope() { ++depth_; }
    ~Scope() {
      if (--depth_ == 0 && group_ != 0) process().close(group_);
    }
    Scope(const Scope&) = delete;
    static bool is_open() { return depth_ > 0; }

   private:
    friend class LastingMemory;
    // Never created on demand: that would call malloc.
    [[gnu::tls_model("initial-exec")]] static thread_local constinit int depth_;
    [[gnu::tls_model("initial-exec")]] static thread_local constinit uint32_t group_;  // or 0
  };

  // At least `bytes` (at most `most`), uninitialised, 16-byte aligned, for the scope that is open
  // on this thread. Null if there is none.
  void* take(size_t bytes) { return take(bytes, Scope::group_); }
  void give(void* data);
  bool owns(const void* data) const { return memory_.owns(data); }
  size_t size(const void* data) const;  // of the block, which it must own

  // For an explicit scope `group`: 0 before it takes its first block.
  void* take(size_t bytes, uint32_t& group);
  void close(uint32_t& group);

  // This many pages keep their memory.
  void set_reserve(size_t count) { memory_.set_reserve(count); }
  // The next `count` pages to be taken get memory now.
  void populate(size_t count) { memory_.populate(count); }

  struct Counts {
    size_t blocks = 0, bytes = 0;      // taken, and their size
    size_t pages = 0, free_pages = 0;  // in use; free with memory
  };
  Counts counts() const;

 private:
  static constexpr size_t kinds = 20;  // of block sizes
  static constexpr size_t most_open = 64;

  // Pages and blocks are numbered from 1, so that 0 means none and the table costs nothing before
  // its first use.
  struct Page {
    uint32_t group = 0;
    uint8_t kind = 0;
    uint16_t taken = 0, touched = 0;  // blocks: now, ever
    uint16_t free = 0;                // the first free block ever touched: it names the next
    uint16_t next = 0, previous = 0;  // in the list of the group's pages of this kind with room
  };
  struct Group {
    uint32_t id = 0;  // 0: not open
    std::array<uint16_t, kinds> with_room{};
  };
  Page& page(uint16_t number) { return pages_[number - 1]; }
  Group& group(uint32_t id) { return open_[id % most_open]; }
  bool open(uint32_t& id);
  void link(Group& group, uint16_t number);
  void unlink(Group& group, uint16_t number);

  Slots<page_bytes, pages> memory_;
  // Every page is taken and none has been given back since: a large graph is being made. Its other
  // blocks go to malloc, without this lock.
  std::atomic<bool> is_exhausted_{false};
  mutable std::mutex mutex_;  // guards what follows
  std::array<Page, pages> pages_{};
  std::array<Group, most_open> open_{};
  uint32_t last_group_ = 0;
  size_t blocks_ = 0, bytes_ = 0;
};

}  // namespace leat
