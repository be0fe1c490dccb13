#include "graph/formats/records.h"

#include <cstring>

#include "core/crc32c.h"
#include "core/error.h"

namespace leat {
namespace {

template <class T>
void append_number(std::string& out, T value) {
  out.append(reinterpret_cast<const char*>(&value), sizeof value);
}

template <class T>
T read_number(const char* from) {
  T value;
  std::memcpy(&value, from, sizeof value);
  return value;
}

}  // namespace

std::string framed_record(std::string_view data) {
  std::string out;
  append_number<uint64_t>(out, data.size());
  append_number(out, masked_crc(crc32c(out.data(), out.size())));
  out.append(data);
  append_number(out, masked_crc(crc32c(data.data(), data.size())));
  return out;
}

std::optional<std::string> RecordReader::next() {
  const uint64_t begin = position();
  const auto fail_here = [&](std::string_view what) {
    fail(Code::data_loss, source_.path(), ": the record at byte ", begin, " ", what);
  };
  constexpr size_t header_bytes = 12, footer_bytes = 4;
  const std::string header = source_.read(header_bytes);
  if (header.empty()) return std::nullopt;
  if (header.size() < header_bytes) fail_here("is torn");
  const auto length = read_number<uint64_t>(header.data());
  if (read_number<uint32_t>(header.data() + 8) != masked_crc(crc32c(header.data(), 8)))
    fail_here("has a length with a wrong checksum");
  std::string data = source_.read(length);
  const std::string footer = source_.read(footer_bytes);
  if (data.size() < length || footer.size() < footer_bytes) fail_here("is torn");
  if (read_number<uint32_t>(footer.data()) != masked_crc(crc32c(data.data(), data.size())))
    fail_here("has a wrong checksum");
  return data;
}

}  // namespace leat
