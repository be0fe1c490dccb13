// Lists of integers that a channel has carried before, such as ids of rows: their number goes
// instead. Li et al., "Scaling distributed machine learning with the parameter server", OSDI 2014,
// §5.1 (key caching), which sends a hash; a number that the sender gives cannot collide.
#pragma once

#include <cstdint>
#include <list>
#include <memory>
#include <optional>
#include <string>

#include "core/dtype.h"

namespace leat {

// What one end remembers of one direction, the least recently used lists forgotten first. Each end
// may remember less than the other: who gets the number of a list that it has not kept asks for it.
// Not thread-safe.
class KnownLists {
 public:
  explicit KnownLists(uint64_t capacity) : capacity_(capacity) {}  // bytes

  // Whether a number is so much shorter than the list that both ends keep a copy.
  static bool is_kept(DType dtype, uint64_t bytes) {
    return (dtype == DType::i32 || dtype == DType::i64) && bytes >= 128 && bytes <= 256 << 10;
  }

  // The number of the list of exactly these bytes. `checksum`: their CRC-32C, which only makes the
  // search short.
  std::optional<uint64_t> find(uint32_t checksum, const void* data, uint64_t bytes);
  // The list with that number; null if it is not kept, or has been forgotten.
  std::shared_ptr<const std::string> find(uint64_t number);
  // The next number, for a list that goes, or has come, in full; keeps it, unless it is null or
  // larger than the capacity.
  uint64_t add(uint32_t checksum, std::shared_ptr<const std::string> list);

 private:
  struct List {
    uint64_t number;
    uint32_t checksum;
    std::shared_ptr<const std::string> bytes;
  };
  const uint64_t capacity_;
  uint64_t next_ = 0, size_ = 0;
  std::list<List> lists_;  // the one used last first
};

}  // namespace leat
