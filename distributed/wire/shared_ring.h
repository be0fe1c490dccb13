// Messages from one process to another through memory that both map: one writer, one reader. The
// other process is not trusted to keep the memory in order: a reader sees damage as DATA_LOSS.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

#include "distributed/grpc/rpc.h"

namespace leat {

// The memory of a ring: this header, then `capacity` bytes, a power of two. Zeros are an empty
// ring.
struct RingHeader {
  alignas(64) std::atomic<uint64_t> written;        // bytes since the beginning; set by the writer
  alignas(64) std::atomic<uint64_t> read;           // the same; set by the reader
  alignas(64) std::atomic<uint32_t> reader_sleeps;  // the next write should signal
  std::atomic<uint32_t> writer_waits;               // the next pop should signal
  std::atomic<uint64_t> writer_waits_for;           // so should the pop that reaches it; 0: none
  std::atomic<uint32_t> reader_reads_region;        // the reader can read the writer's SharedRegion
};
static_assert(std::atomic<uint64_t>::is_always_lock_free);

constexpr size_t ring_bytes(size_t capacity) { return sizeof(RingHeader) + capacity; }
// A message lies in the ring in one piece, so it may have half of it.
constexpr size_t largest_ring_message(size_t capacity) { return capacity / 2 - 8; }

// Neither end is thread-safe; the two ends may be used at the same time.
class RingWriter {
 public:
  RingWriter(void* memory, size_t capacity);

  // Copies a message of `bytes` bytes, at most largest_ring_message(). False if there is no room:
  // then the reader signals when it has read more. DATA_LOSS if the reader has damaged the memory.
  bool write(const Slices& slices, size_t bytes);
  // Whether the reader sleeps, and has to be signalled. True once per sleep.
  bool wakes_reader();
  // All that was written, and how much of it has been popped. DATA_LOSS as above.
  uint64_t written() const { return written_; }
  uint64_t popped() const;
  // Asks for a signal when the reader has popped so much.
  void wait_for(uint64_t popped) { header_->writer_waits_for.store(popped); }
  bool may_lend() const { return header_->reader_reads_region.load() != 0; }

 private:
  bool has_room(uint64_t needed) const;

  RingHeader* header_;
  char* data_;
  const uint64_t capacity_;
  uint64_t written_ = 0;
};

class RingReader {
 public:
  RingReader(void* memory, size_t capacity);

  // The next message, in place until pop(). DATA_LOSS if the writer has damaged the memory.
  std::optional<std::string_view> next();
  void pop();
  // Whether the writer waits for room, or for what has been popped, and has to be signalled. True
  // once per wait.
  bool wakes_writer();
  // The next write will signal. False if there is a message already.
  bool sleep();
  // Tells the writer that it may lend what lies in its region.
  void allow_lending() { header_->reader_reads_region.store(1); }

 private:
  RingHeader* header_;
  const char* data_;
  const uint64_t capacity_;
  uint64_t read_ = 0;
  uint64_t size_ = 0;  // of the message that next() returned, with its length
};

}  // namespace leat
