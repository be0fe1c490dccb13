#include "distributed/wire/shared_ring.h"

#include <bit>
#include <cstring>

#include "core/error.h"

namespace leat {
namespace {

// Before each message: its bytes, or that the rest of the memory is unused.
constexpr uint64_t length_bytes = sizeof(uint64_t);
constexpr uint64_t skip_to_begin = UINT64_MAX;

constexpr uint64_t padded(uint64_t bytes) { return (bytes + 7) & ~uint64_t{7}; }

[[noreturn]] void fail_damaged(std::string_view who) {
  fail(Code::data_loss, "the memory shared with the peer is damaged: its ", who,
       " has an impossible position");
}

}  // namespace

RingWriter::RingWriter(void* memory, size_t capacity)
    : header_(static_cast<RingHeader*>(memory)),
      data_(static_cast<char*>(memory) + sizeof(RingHeader)),
      capacity_(capacity) {
  check_internal(std::has_single_bit(capacity), "a ring of ", capacity, " bytes");
}

uint64_t RingWriter::popped() const {
  const uint64_t read = header_->read.load();
  if (written_ - read > capacity_) fail_damaged("reader");
  return read;
}

bool RingWriter::has_room(uint64_t needed) const {
  return capacity_ - (written_ - popped()) >= needed;
}

bool RingWriter::write(const Slices& slices, size_t bytes) {
  check_internal(bytes <= largest_ring_message(capacity_), "a message of ", bytes,
                 " bytes for a ring of ", capacity_);
  const uint64_t whole = length_bytes + padded(bytes);
  const uint64_t at = written_ & (capacity_ - 1);
  const uint64_t skipped = capacity_ - at < whole ? capacity_ - at : 0;
  if (!has_room(skipped + whole)) {
    header_->writer_waits.store(1);  // sequentially consistent, as the reader's side
    if (!has_room(skipped + whole)) return false;
    header_->writer_waits.store(0);
  }
  if (skipped > 0) std::memcpy(data_ + at, &skip_to_begin, length_bytes);
  char* to = data_ + ((written_ + skipped) & (capacity_ - 1));
  const uint64_t length = bytes;
  std::memcpy(to, &length, length_bytes);
  to += length_bytes;
  for (const ByteSlice& slice : slices) {
    if (slice.is_lent || slice.size == 0) continue;
    std::memcpy(to, slice.data, slice.size);
    to += slice.size;
  }
  written_ += skipped + whole;
  header_->written.store(written_);
  return true;
}

bool RingWriter::wakes_reader() {
  return header_->reader_sleeps.load() != 0 && header_->reader_sleeps.exchange(0) != 0;
}

RingReader::RingReader(void* memory, size_t capacity)
    : header_(static_cast<RingHeader*>(memory)),
      data_(static_cast<char*>(memory) + sizeof(RingHeader)),
      capacity_(capacity) {}

std::optional<std::string_view> RingReader::next() {
  for (;;) {
    const uint64_t available = header_->written.load(std::memory_order_acquire) - read_;
    if (available == 0) return std::nullopt;
    if (available > capacity_ || available < length_bytes) fail_damaged("writer");
    const uint64_t at = read_ & (capacity_ - 1);
    uint64_t length;
    std::memcpy(&length, data_ + at, length_bytes);
    if (length == skip_to_begin) {
      if (at == 0 || available < capacity_ - at) fail_damaged("writer");
      read_ += capacity_ - at;
      continue;
    }
    if (length > largest_ring_message(capacity_) || length_bytes + padded(length) > available ||
        length_bytes + length > capacity_ - at)
      fail_damaged("writer");
    size_ = length_bytes + padded(length);
    return std::string_view(data_ + at + length_bytes, length);
  }
}

void RingReader::pop() {
  read_ += size_;
  size_ = 0;
  header_->read.store(read_);
}

bool RingReader::wakes_writer() {
  uint64_t waits_for = header_->writer_waits_for.load();
  const bool has_come = waits_for != 0 && waits_for <= read_ &&
                        header_->writer_waits_for.compare_exchange_strong(waits_for, 0);
  return (header_->writer_waits.load() != 0 && header_->writer_waits.exchange(0) != 0) || has_come;
}

bool RingReader::sleep() {
  header_->reader_sleeps.store(1);
  if (header_->written.load() == read_) return true;
  header_->reader_sleeps.store(0);
  return false;
}

}  // namespace leat
