// Protobuf's wire format by hand: a client's messages, independent of the library's generated code.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace leat::wire_format {

inline std::string varint(uint64_t value) {
  std::string out;
  for (; value >= 128; value >>= 7) out += static_cast<char>(value | 128);
  return out + static_cast<char>(value);
}
inline std::string number(int field, uint64_t value) {
  return varint(static_cast<uint64_t>(field) << 3) + varint(value);
}
inline std::string text(int field, std::string_view value) {
  return varint(static_cast<uint64_t>(field) << 3 | 2) + varint(value.size()) + std::string(value);
}

// The fields of a message by number; numbers as decimal text. Supports well-formed messages of
// varints and bytes.
inline std::multimap<int, std::string> fields(std::string_view message) {
  std::multimap<int, std::string> out;
  const auto read = [&message] {
    uint64_t value = 0;
    for (int shift = 0;; shift += 7) {
      const auto byte = static_cast<unsigned char>(message.at(0));
      message.remove_prefix(1);
      value |= static_cast<uint64_t>(byte & 127) << shift;
      if (byte < 128) return value;
    }
  };
  while (!message.empty()) {
    const uint64_t tag = read();
    const int field = static_cast<int>(tag >> 3);
    if ((tag & 7) == 0) {
      out.emplace(field, std::to_string(read()));
    } else if ((tag & 7) == 2) {
      const uint64_t size = read();
      out.emplace(field, message.substr(0, size));
      message.remove_prefix(size);
    } else {
      const size_t size = (tag & 7) == 1 ? 8 : 4;
      out.emplace(field, message.substr(0, size));
      message.remove_prefix(size);
    }
  }
  return out;
}

}  // namespace leat::wire_format
