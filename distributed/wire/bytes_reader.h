// Reads received bytes front to back, across the borders of their parts. Callers check left()
// before they read: they know how to name a message that ends too early.
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

  // Calls `take` with one piece after another. At most left() bytes.
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
  // Reads bytes in place if they lie in one part; otherwise reads nothing.
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
