// What the system has promised this process and not yet given. Linux maps more than it has: pages
// are taken from what is free when they are first used, so a hundred buffers that are made before
// one is written all see the same free memory, and the process that uses them gets a signal 9.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <mutex>
#include <vector>

namespace leat {

// Mappings of which a part has not been used. Thread-safe.
class PromisedMemory {
 public:
  // That of this process. Lives as long as it.
  static PromisedMemory& process();

  // Was just mapped, and nothing of it is used: page by page, `data` starts on one.
  void add(void* data, size_t bytes);
  // Is being unmapped. Fine if it is not known.
  void remove(void* data);
  // Bytes that have no page yet. Forgets mappings that are used, up to the rest of an eighth at
  // most.
  uint64_t bytes();

 private:
  friend class MemoryClaim;
  uint64_t untouched_locked();

  std::mutex mutex_;
  std::map<void*, size_t> mappings_;
  std::vector<unsigned char> pages_;
  uint64_t claimed_ = 0;  // by MemoryClaims
};

// The right to a buffer, while it is being mapped or filled. A claim on a large buffer asks the
// system, as does one small claim for every 64 MB of them.
class MemoryClaim {
 public:
  // RESOURCE_EXHAUSTED if the machine, the control groups or the address space of the process have
  // not so much left besides what is promised, and a reserve: a 32nd of the memory, from 64 MB to
  // 1 GB.
  explicit MemoryClaim(size_t bytes);
  ~MemoryClaim();
  MemoryClaim(const MemoryClaim&) = delete;

 private:
  uint64_t claimed_ = 0;
};

}  // namespace leat
