// Numbers of 7 bits a byte, the lowest first: in tables, and in what Snappy has compressed.
#pragma once

#include <cstdint>
#include <string_view>

#include "core/error.h"

namespace leat {

// Takes a number from the front. DATA_LOSS if it does not end.
inline uint64_t take_varint(std::string_view& bytes) {
  uint64_t out = 0;
  for (int shift = 0; shift <= 63 && !bytes.empty(); shift += 7) {
    const auto byte = static_cast<unsigned char>(bytes.front());
    bytes.remove_prefix(1);
    out |= uint64_t{byte & 0x7fu} << shift;
    if (byte < 0x80) return out;
  }
  fail(Code::data_loss, "a number in it does not end");
}

}  // namespace leat
