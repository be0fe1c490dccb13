// Memory of this process that other processes of the host may read: what they need of it they copy
// from where it lies.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <mutex>
#include <optional>

#include "core/fd.h"

namespace leat {

// A range of addresses over one file in memory. Thread-safe. A child made by fork() shares it: what
// the child writes there, the parent sees.
class SharedRegion {
 public:
  // RESOURCE_EXHAUSTED if the system or a limit of the process (ulimit -v, -f) does not allow it.
  explicit SharedRegion(size_t bytes);
  ~SharedRegion();
  SharedRegion(const SharedRegion&) = delete;

  // That of this process, from which big buffers come once there is one (BlockMemory::process());
  // null before open(). It lives as long as the process.
  static SharedRegion* process();
  // Makes it: twice as large as the memory, of which it takes only what is used. Later calls do
  // nothing. RESOURCE_EXHAUSTED, each time, if it cannot be made.
  static void open();

  // `bytes`, a multiple of a page, aligned to `alignment`, a power of two. The pages are zero, and
  // have no memory yet. Null if there is no room.
  void* take(size_t bytes, size_t alignment);
  // Gives the memory of what take() returned back to the system.
  void give(void* data, size_t bytes);

  // Where the bytes lie, for a peer; none if they are not of this region.
  std::optional<uint64_t> place_of(const void* data, size_t bytes) const;
  // For other processes: opened for reading only, and sealed against being cut short.
  const Fd& descriptor() const { return for_reading_; }

 private:
  const size_t bytes_;
  Fd file_, for_reading_;
  char* base_ = nullptr;
  std::mutex mutex_;
  std::map<size_t, size_t> free_;  // offset and bytes, without neighbours that touch
};

// The region of another process, mapped for reading.
class PeerRegion {
 public:
  // DATA_LOSS unless it is sealed, so that reading it cannot end this process; RESOURCE_EXHAUSTED
  // if it cannot be mapped.
  explicit PeerRegion(const Fd& descriptor);
  ~PeerRegion();
  PeerRegion(const PeerRegion&) = delete;

  // The bytes at a place that the peer has named; null if they are not all in its region. The peer
  // may change them while they are read.
  const char* at(uint64_t place, size_t bytes) const;

 private:
  size_t bytes_ = 0;
  const char* base_ = nullptr;
};

}  // namespace leat
