#include "graph/formats/checkpoint_strings.h"

#include <algorithm>
#include <vector>

#include "core/crc32c.h"
#include "core/error.h"

namespace leat {
namespace {

void append_varint(std::string& out, uint64_t value) {
  for (; value >= 0x80; value >>= 7) out.push_back(static_cast<char>(value | 0x80));
  out.push_back(static_cast<char>(value));
}

// The checksums go over the lengths as fixed numbers, of 4 bytes or, for long strings, of 8.
uint32_t crc_of_length(uint64_t length, uint32_t before) {
  if (length <= UINT32_MAX) {
    const auto narrow = static_cast<uint32_t>(length);
    return crc32c(&narrow, sizeof narrow, before);
  }
  return crc32c(&length, sizeof length, before);
}

}  // namespace

StringLengths string_lengths(std::span<const std::string> strings) {
  StringLengths out;
  for (const std::string& text : strings) {
    append_varint(out.bytes, text.size());
    out.crc = crc_of_length(text.size(), out.crc);
  }
  const uint32_t checksum = masked_crc(out.crc);
  out.bytes.append(reinterpret_cast<const char*>(&checksum), sizeof checksum);
  out.crc = crc32c(&checksum, sizeof checksum, out.crc);
  return out;
}

uint32_t read_strings(std::string_view bytes, std::span<std::string> out) {
  const auto torn = [] { fail(Code::data_loss, "its strings do not fit its bytes"); };
  size_t at = 0;
  uint32_t crc = 0;
  std::vector<uint64_t> lengths;
  for (size_t i = 0; i < out.size(); ++i) {
    uint64_t length = 0;
    for (int shift = 0;; shift += 7) {
      if (at == bytes.size() || shift > 63) torn();
      const auto byte = static_cast<unsigned char>(bytes[at++]);
      length |= uint64_t{byte & 0x7fu} << shift;
      if (byte < 0x80) break;
    }
    lengths.push_back(length);
    crc = crc_of_length(length, crc);
  }
  if (bytes.size() - at < sizeof(uint32_t)) torn();
  uint32_t stored = 0;
  std::copy_n(bytes.data() + at, sizeof stored, reinterpret_cast<char*>(&stored));
  if (stored != masked_crc(crc)) fail(Code::data_loss, "the lengths of its strings have changed");
  crc = crc32c(&stored, sizeof stored, crc);
  at += sizeof stored;
  for (size_t i = 0; i < out.size(); ++i) {
    if (lengths[i] > bytes.size() - at) torn();
    out[i].assign(bytes.substr(at, lengths[i]));
    crc = crc32c(out[i].data(), out[i].size(), crc);
    at += lengths[i];
  }
  if (at != bytes.size()) torn();
  return crc;
}

}  // namespace leat
