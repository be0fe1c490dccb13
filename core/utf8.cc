#include "core/utf8.h"

namespace leat {

Utf8Character next_utf8(std::string_view text) {
  const auto byte = [&](size_t i) { return static_cast<unsigned char>(text[i]); };
  const unsigned char lead = byte(0);
  if (lead < 0x80) return {1, lead};
  const size_t bytes = lead < 0xC2 || lead > 0xF4 ? 1 : lead < 0xE0 ? 2 : lead < 0xF0 ? 3 : 4;
  if (bytes == 1) return {1, {}};
  const unsigned char low = lead == 0xE0   ? 0xA0
                            : lead == 0xF0 ? 0x90
                                           : 0x80,
                      high = lead == 0xED   ? 0x9F
                             : lead == 0xF4 ? 0x8F
                                            : 0xBF;
  char32_t value = lead & (0xFFu >> (bytes + 1));
  for (size_t i = 1; i < bytes; ++i) {
    const bool is_valid =
        i < text.size() && byte(i) >= (i == 1 ? low : 0x80) && byte(i) <= (i == 1 ? high : 0xBF);
    if (!is_valid) return {i, {}};
    value = value << 6 | (byte(i) & 0x3F);
  }
  return {bytes, value};
}

void append_utf8(char32_t c, std::string& out) {
  if (c >= 0xD800 && c <= 0xDFFF) c = 0xFFFD;
  if (c < 0x80) {
    out += static_cast<char>(c);
    return;
  }
  const int rest = c < 0x800 ? 1 : c < 0x10000 ? 2 : 3;  // bytes behind the first
  constexpr int marks[] = {0, 0xC0, 0xE0, 0xF0};
  out += static_cast<char>(marks[rest] | static_cast<int>(c >> (6 * rest)));
  for (int i = rest; i-- > 0;) out += static_cast<char>(0x80 | (c >> (6 * i) & 0x3F));
}

std::string as_utf8(std::string_view text) {
  constexpr std::string_view digits = "0123456789abcdef";
  std::string out;
  out.reserve(text.size());
  while (!text.empty()) {
    const Utf8Character next = next_utf8(text);
    const std::string_view bytes = text.substr(0, next.bytes);
    if (next.value) {
      out += bytes;
    } else {
      for (const char c : bytes) {
        const auto byte = static_cast<unsigned char>(c);
        out += {'\\', 'x', digits[byte / 16], digits[byte % 16]};
      }
    }
    text.remove_prefix(next.bytes);
  }
  return out;
}

}  // namespace leat
