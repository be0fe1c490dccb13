// Strings as a checkpoint's data stores them: their lengths as varints, a checksum of the lengths,
// then the bytes.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace leat {

struct StringLengths {
  std::string bytes;  // what stands before the strings
  uint32_t crc = 0;   // of the lengths and their checksum; that of the strings continues it
};

StringLengths string_lengths(std::span<const std::string> strings);

// Returns the CRC of all. DATA_LOSS where the bytes end too early or a checksum is wrong.
uint32_t read_strings(std::string_view bytes, std::span<std::string> out);

}  // namespace leat
