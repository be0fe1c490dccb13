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
  if (position_ == file_.size()) return std::nullopt;
  const auto fail_here = [&](std::string_view what) {
    fail(Code::data_loss, file_.path(), ": the record at byte ", position_, " ", what);
  };
  char header[12];
  if (file_.size() - position_ < sizeof header) fail_here("is torn");
  file_.read(position_, header, sizeof header);
  const auto length = read_number<uint64_t>(header);
  if (read_number<uint32_t>(header + 8) != masked_crc(crc32c(header, 8)))
    fail_here("has a length with a wrong checksum");
  if (length > file_.size() - position_ - sizeof header ||
      file_.size() - position_ - sizeof header - length < 4)
    fail_here("is torn");
  std::string data(length, '\0');
  file_.read(position_ + sizeof header, data.data(), length);
  char footer[4];
  file_.read(position_ + sizeof header + length, footer, sizeof footer);
  if (read_number<uint32_t>(footer) != masked_crc(crc32c(data.data(), data.size())))
    fail_here("has a wrong checksum");
  position_ += sizeof header + length + sizeof footer;
  return data;
}

}  // namespace leat
