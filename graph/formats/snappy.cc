// Format: format_description.txt of github.com/google/snappy. The length of all, then elements:
// bytes as they are, or a piece of what is there already. The low two bits of an element's first
// byte say which.
#include "graph/formats/snappy.h"

#include <cstdint>

#include "core/error.h"
#include "graph/formats/varint.h"

namespace leat {
namespace {

constexpr size_t most_per_byte = 32;  // a piece of 64 bytes takes 3

class Decompressor {
 public:
  explicit Decompressor(std::string_view bytes) : rest_(bytes) {
    size_ = take_varint(rest_);
    if (size_ / most_per_byte > bytes.size()) fail_damaged();
    out_.reserve(size_);
  }

  std::string all() {
    while (!rest_.empty()) {
      const uint64_t tag = number(1);
      const uint64_t upper = tag >> 2;
      switch (tag & 3) {
        case 0:  // bytes; up to 60, or the length comes in 1 to 4 bytes
          append(upper < 60 ? upper + 1 : number(upper - 59) + 1);
          break;
        case 1:
          repeat(4 + (upper & 7), (tag >> 5 << 8) | number(1));
          break;
        case 2:
          repeat(upper + 1, number(2));
          break;
        default:
          repeat(upper + 1, number(4));
      }
    }
    if (out_.size() != size_) fail_damaged();
    return std::move(out_);
  }

 private:
  [[noreturn]] static void fail_damaged() {
    fail(Code::data_loss, "what is compressed in it is damaged");
  }
  // The next `bytes` bytes, the lowest first.
  uint64_t number(size_t bytes) {
    if (bytes > rest_.size()) fail_damaged();
    uint64_t out = 0;
    for (size_t i = 0; i < bytes; ++i)
      out |= uint64_t{static_cast<unsigned char>(rest_[i])} << (8 * i);
    rest_.remove_prefix(bytes);
    return out;
  }
  void append(uint64_t bytes) {
    if (bytes > rest_.size() || bytes > size_ - out_.size()) fail_damaged();
    out_.append(rest_.substr(0, bytes));
    rest_.remove_prefix(bytes);
  }
  // From `back` bytes before the end on; it may run into what it appends.
  void repeat(uint64_t bytes, uint64_t back) {
    if (back == 0 || back > out_.size() || bytes > size_ - out_.size()) fail_damaged();
    for (uint64_t i = 0; i < bytes; ++i) out_ += out_[out_.size() - back];
  }

  std::string_view rest_;
  uint64_t size_ = 0;
  std::string out_;
};

}  // namespace

std::string snappy_decompressed(std::string_view bytes) { return Decompressor(bytes).all(); }

}  // namespace leat
