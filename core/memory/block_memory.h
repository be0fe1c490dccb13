// Host memory for big buffers, apart from malloc's heap. In the heap, small long-lived blocks would
// settle between big blocks that live for one step, and fragment it for good. A freed block is kept
// for a while, because the first touch of a page costs up to 1.5 µs.
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
  // malloc serves smaller blocks. It also serves larger ones: it maps them afresh each time, in
  // huge pages.
  static constexpr size_t least = size_t{64} << 10, most = size_t{32} << 20;
  static constexpr size_t keep_at_most = size_t{128} << 20;

  // While all blocks together have at most `reserve` bytes, nothing is given back, and a size with
  // many blocks is mapped several blocks at a time, so that their number soon settles.
  explicit BlockMemory(size_t reserve = 0) : reserve_(reserve) {}
  ~BlockMemory();
  BlockMemory(const BlockMemory&) = delete;

  // The instance of this process, with a reserve of 8 MB: enough to keep what a small model takes
  // in every step. Its blocks lie in SharedRegion::process(), if there is one. Lives as long as the
  // process.
  static BlockMemory& process();

  // At least `bytes` (in [least, most]), uninitialised, page-aligned; from 4 MB on aligned to a
  // huge page. Null if out of memory.
  void* take(size_t bytes);
  // `bytes` as passed to take().
  void give(void* data, size_t bytes);
  // Returns to the system the blocks that are unused since the last call but one, largest first,
  // down to the reserve. take() calls it every so often, and so does the code that runs steps.
  void trim();

  struct Counts {
    size_t blocks = 0, bytes = 0;            // mapped
    size_t kept_blocks = 0, kept_bytes = 0;  // the free ones among them
  };
  Counts counts() const;

 private:
  struct Free {
    void* data;
    uint64_t since;  // number of the trim() before it was freed
  };
  struct Size {
    std::vector<Free> free;  // longest free first
    size_t blocks = 0;       // mapped
  };
  void* map(size_t size, bool is_for_later) const;
  void add_spares(size_t size);
  void trim_locked();
  static size_t rounded(size_t bytes);

  const size_t reserve_;
  bool is_of_process_ = false;
  mutable std::mutex mutex_;
  std::map<size_t, Size> sizes_;
  uint64_t trims_ = 0, taken_ = 0;
  Counts counts_;
};

}  // namespace leat
