#include "distributed/utf8.h"

namespace leat {
namespace {

// Bytes of the character at the front of the text, 0 if there is none (The Unicode Standard, table
// 3-7).
size_t character_at(std::string_view text) {
  const auto byte = [&](size_t i) -> unsigned {
    return i < text.size() ? static_cast<unsigned char>(text[i]) : 0;
  };
  const auto is_within = [&](size_t i, unsigned least, unsigned most) {
    return byte(i) >= least && byte(i) <= most;
  };
  const auto follow = [&](size_t i) { return is_within(i, 0x80, 0xbf); };
  const unsigned first = byte(0);
  if (first < 0x80) return 1;
  if (first >= 0xc2 && first <= 0xdf) return follow(1) ? 2 : 0;
  if (first >= 0xe0 && first <= 0xef) {
    const unsigned least = first == 0xe0 ? 0xa0 : 0x80, most = first == 0xed ? 0x9f : 0xbf;
    return is_within(1, least, most) && follow(2) ? 3 : 0;
  }
  if (first >= 0xf0 && first <= 0xf4) {
    const unsigned least = first == 0xf0 ? 0x90 : 0x80, most = first == 0xf4 ? 0x8f : 0xbf;
    return is_within(1, least, most) && follow(2) && follow(3) ? 4 : 0;
  }
  return 0;
}

}  // namespace

std::string as_utf8(std::string_view text) {
  constexpr std::string_view digits = "0123456789abcdef";
  std::string out;
  out.reserve(text.size());
  while (!text.empty()) {
    const size_t length = character_at(text);
    if (length > 0) {
      out += text.substr(0, length);
    } else {
      const auto byte = static_cast<unsigned char>(text.front());
      out += {'\\', 'x', digits[byte / 16], digits[byte % 16]};
    }
    text.remove_prefix(length > 0 ? length : 1);
  }
  return out;
}

}  // namespace leat
