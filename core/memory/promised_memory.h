// Memory that the system has promised this process but not yet given. Linux maps more than it has,
// and takes pages from free memory at first use. So a hundred buffers made before any is written
// all see the same free memory, and the process that uses them gets a SIGKILL.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <mutex>
#include <vector>

namespace leat {

// Mappings that are partly unused. Thread-safe.
class PromisedMemory {
 public:
  // The instance of this process. Lives as long as the process.
  static PromisedMemory& process();

  // Adds a fresh mapping, of which no page is used. `data` is page-aligned.
  void add(void* data, size_t bytes);
  // Removes a mapping that is being unmapped. Unknown ones are ignored.
  void remove(void* data);
  // Bytes that have no page yet. Forgets mappings once at most an eighth of them is unused.
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
// system, and so does one small claim for every 64 MB of small buffers.
class MemoryClaim {
 public:
  // RESOURCE_EXHAUSTED if the machine, the control groups or the address space have too little left
  // besides promised memory and a reserve: 1/32 of the memory, from 64 MB to 1 GB.
  explicit MemoryClaim(size_t bytes);
  ~MemoryClaim();
  MemoryClaim(const MemoryClaim&) = delete;

 private:
  uint64_t claimed_ = 0;
};

}  // namespace leat
