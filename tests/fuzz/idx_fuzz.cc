// idx files, compressed or not.
#include <sys/mman.h>
#include <unistd.h>

#include "frontends/cpp/data/data.h"
#include "tests/fuzz/target.h"

namespace leat::fuzz {

std::vector<std::string> seeds() {
  using namespace std::string_literals;
  return {
      "\0\0\x08\x03\0\0\0\x02\0\0\0\x02\0\0\0\x02"s + "abcdefgh",
      "\0\0\x08\x01\0\0\0\x03"s + "abc",
      "\0\0\x0d\x01\0\0\0\x01"s + "\x3f\x80\0\0"s,
      "\0\0\x0e\x00"s + "12345678",
      // gzip of the second one
      "\x1f\x8b\x08\0\0\0\0\0\x02\x03\x63\x60\xe0\x60\x64\x60\x60\x60\x4e\x4c\x4a\x06\0\xb8\x3a\xd1\x5b\x0b\0\0\0"s,
  };
}

}  // namespace leat::fuzz

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static const int file = memfd_create("idx", 0);
  static const std::string path = "/proc/self/fd/" + std::to_string(file);
  if (ftruncate(file, 0) != 0 || pwrite(file, data, size, 0) != static_cast<ssize_t>(size))
    return 0;
  leat::fuzz::expect_no_mistake_of_ours([&] { leat::data::read_idx(path); });
  return 0;
}
