// Host memory for big buffers, apart from malloc's heap. There, what is small and lives long would
// settle between what is big and lives for a step, and the holes would never be whole again. A
// block that is freed is kept for a while: a page that is touched for the first time costs up
// to 1.5 µs.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <mutex>
#include <vector>

namespace leat {

// Thread-safe.
class BlockMemory {
 public:
  // What is smaller is malloc's; what is larger is mapped afresh each time (by malloc), in huge
  // pages.
  static constexpr size_t least = size_t{64} << 10, most = size_t{32} << 20;
  static constexpr size_t keep_at_most = size_t{128} << 20;

  // With no more than `reserve` bytes in all its blocks, nothing is given back, and where there are
  // many of a size, more than one of it is mapped at a time: their number soon stays.
  explicit BlockMemory(size_t reserve = 0) : reserve_(reserve) {}
  ~BlockMemory();
  BlockMemory(const BlockMemory&) = delete;

  // That of this process, with a reserve of 8 MB: what a small model needs anew in every step
  // stays. Lives as long as the process.
  static BlockMemory& process();

  // At least `bytes` (which is in [least, most]), uninitialised, on a page's border: from 4 MB on
  // on a huge page's. Null if there is none.
  void* take(size_t bytes);
  // `bytes` as they were asked for.
  void give(void* data, size_t bytes);
  // Gives back to the system what has not been used since the last call but one, the largest first,
  // down to the reserve. Called by take() every so often, and by those who run steps.
  void trim();

  struct Counts {
    size_t blocks = 0, bytes = 0;            // mapped
    size_t kept_blocks = 0, kept_bytes = 0;  // of them, free
  };
  Counts counts() const;

 private:
  struct Free {
    void* data;
    uint64_t since;  // number of the trim() before it was freed
  };
  struct Size {
    std::vector<Free> free;  // the longest free first
    size_t blocks = 0;       // mapped
  };
  void add_spares(size_t size);
  void trim_locked();
  static size_t rounded(size_t bytes);

  const size_t reserve_;
  mutable std::mutex mutex_;
  std::map<size_t, Size> sizes_;
  uint64_t trims_ = 0, taken_ = 0;
  Counts counts_;
};

}  // namespace leat
