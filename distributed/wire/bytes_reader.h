// Reads received bytes from front to back, over the borders of their parts. What is there is asked
// before it is read: who reads knows what a message that ends too early is called.
#pragma once

#include <cstddef>
#include <cstring>
#include <optional>
#include <string_view>
#include <vector>

#include "core/error.h"
#include "distributed/grpc/rpc.h"

namespace leat {

class BytesReader {
 public:
  // The bytes must outlive it.
  explicit BytesReader(const Bytes& bytes) : parts_(bytes.parts()), left_(bytes.size()) {}

  size_t left() const { return left_; }

  // Calls it with one piece after the other. At most left() bytes.
  template <class Take>
  void take(size_t bytes, Take&& take) {
    check_internal(bytes <= left_, "reads ", bytes, " bytes of ", left_);
    left_ -= bytes;
    while (bytes > 0) {
      const std::string_view piece = parts_[part_].substr(at_, bytes);
      take(piece);
      bytes -= piece.size();
      at_ += piece.size();
      if (at_ == parts_[part_].size()) {
        ++part_;
        at_ = 0;
      }
    }
  }
  void read(void* into, size_t bytes) {
    auto* to = static_cast<char*>(into);
    take(bytes, [&](std::string_view piece) {
      std::memcpy(to, piece.data(), piece.size());
      to += piece.size();
    });
  }
  // Reads them where they lie, if that is in one part; otherwise nothing is read.
  std::optional<std::string_view> view(size_t bytes) {
    if (bytes == 0) return std::string_view();
    if (part_ == parts_.size() || bytes > parts_[part_].size() - at_) return std::nullopt;
    std::string_view out;
    take(bytes, [&](std::string_view piece) { out = piece; });
    return out;
  }

 private:
  const std::vector<std::string_view>& parts_;
  size_t part_ = 0, at_ = 0;  // next byte
  size_t left_;
};

}  // namespace leat
