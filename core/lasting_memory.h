// Memory for small things that are made together and kept for long, apart from malloc's heap: the
// graph and the programs of a session. In the heap they would settle one by one between what comes
// and goes with each message, and each would keep a page for itself. malloc of the program `leat`
// takes them from here while a Scope is open on its thread (tools/leat/malloc.cc).
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <mutex>

#include "core/slot_memory.h"

namespace leat {

// Blocks of few sizes in pages, of one size in each page. What is taken in one scope lies together
// in pages of its own. What is free there is used again in that scope; later, a page that is free
// as a whole goes back to the system. Thread-safe. Allocates nothing itself and needs no
// constructor to have run.
class LastingMemory {
 public:
  static constexpr size_t most = 1'024;  // bytes of a block; what is larger is malloc's
  static constexpr size_t page_bytes = 4'096, pages = 65'000;

  constexpr LastingMemory() = default;
  LastingMemory(const LastingMemory&) = delete;

  // That of this process, of which malloc takes. Nothing else does.
  static LastingMemory& process();

  // While one is open, what its thread asks of malloc is to last. One within another is part of it.
  // Costs next to nothing where malloc is another one.
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
    // Never made on demand: that would call malloc.
    [[gnu::tls_model("initial-exec")]] static thread_local constinit int depth_;
    [[gnu::tls_model("initial-exec")]] static thread_local constinit uint32_t group_;  // or 0
  };

  // At least `bytes` (at most `most`), uninitialised, on a border of 16 bytes, for the scope that
  // is open on this thread. Null if there is none.
  void* take(size_t bytes) { return take(bytes, Scope::group_); }
  void give(void* data);
  bool owns(const void* data) const { return memory_.owns(data); }
  size_t size(const void* data) const;  // of the block, which it owns

  // A scope's number, 0 before it has taken its first block.
  void* take(size_t bytes, uint32_t& group);
  void close(uint32_t& group);

  // So many pages keep their memory.
  void set_reserve(size_t count) { memory_.set_reserve(count); }
  // The next so many pages to be taken have memory.
  void populate(size_t count) { memory_.populate(count); }

  struct Counts {
    size_t blocks = 0, bytes = 0;      // taken, and of their blocks
    size_t pages = 0, free_pages = 0;  // in use; free, with their memory
  };
  Counts counts() const;

 private:
  static constexpr size_t kinds = 20;  // of block sizes
  static constexpr size_t most_open = 64;

  // Pages and blocks are named by a number that is one more than their index: 0 is none, and the
  // table costs nothing before it is used.
  struct Page {
    uint32_t group = 0;
    uint8_t kind = 0;
    uint16_t taken = 0, touched = 0;  // blocks: now, ever
    uint16_t free = 0;                // the first free block that was touched: it names the next
    uint16_t next = 0, previous = 0;  // among the group's pages of its kind that have room
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
  // Every page is taken and nothing has been given back since: a large graph is being made, whose
  // other blocks are malloc's and need no lock.
  std::atomic<bool> is_exhausted_{false};
  mutable std::mutex mutex_;  // guards what follows
  std::array<Page, pages> pages_{};
  std::array<Group, most_open> open_{};
  uint32_t last_group_ = 0;
  size_t blocks_ = 0, bytes_ = 0;
};

}  // namespace leat
