// Files of records, compressed or not: the first byte selects how to read the rest.
#include <sys/mman.h>
#include <unistd.h>

#include "graph/formats/record_file.h"
#include "graph/formats/records.h"
#include "tests/fuzz/target.h"

namespace leat::fuzz {
namespace {

OpenedFile open(const std::string& path, uint8_t how) {
  const auto compression = static_cast<Compression>(how / 4 % 3);
  switch (how % 4) {
    case 0:
      return open_records(path, compression);
    case 1:
      return open_lines(path, how / 16, compression);
    case 2:
      return open_fixed_length(path, {.record = 1 + how / 16}, compression);
    default:
      return open_fixed_length(path, {.header = 3, .record = 7, .footer = how / 16, .hop = 5},
                               compression);
  }
}

}  // namespace

std::vector<std::string> seeds() {
  using namespace std::string_literals;
  const std::string records = framed_record("first") + framed_record("") + framed_record("third");
  const std::string gzip =
      "\x1f\x8b\x08\0\0\0\0\0\x02\x03\x63\x60\xe0\x60\x64\x60\x60\x60\x4e\x4c\x4a\x06\0\xb8\x3a\xd1\x5b\x0b\0\0\0"s;
  return {
      "\0"s + records,
      "\x01head\na,1\r\nb,2\n\nlast"s,
      "\x11head\na,1\r\n"s,
      "\x22"
      "0123456789abcdef"s,
      "\x33headerrecordrecordfooter"s,
      "\x05"s + gzip,
      "\x06"s + gzip + gzip,
      "\x09"s + "\x78\x9c\x63\x60\x60\x60\0\0\0\x04\0\x01"s,
  };
}

}  // namespace leat::fuzz

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static const int file = memfd_create("records", 0);
  static const std::string path = "/proc/self/fd/" + std::to_string(file);
  if (size == 0 || ftruncate(file, 0) != 0 ||
      pwrite(file, data + 1, size - 1, 0) != static_cast<ssize_t>(size - 1))
    return 0;
  leat::fuzz::expect_no_mistake_of_ours([&] {
    const leat::OpenedFile opened = leat::fuzz::open(path, data[0]);
    while (opened->next()) {
    }
  });
  return 0;
}
