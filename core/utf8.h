// UTF-8, character by character (The Unicode Standard, table 3-7).
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

namespace leat {

struct Utf8Character {
  size_t bytes;                   // at least 1
  std::optional<char32_t> value;  // none if the bytes are no character
};

// The character at the front of a text that is not empty. Of what is none, the longest part that
// could have begun one.
Utf8Character next_utf8(std::string_view text);

// Half of a surrogate pair becomes U+FFFD.
void append_utf8(char32_t character, std::string& out);

// For texts that go where only UTF-8 may, the strings of protobuf messages: with each byte that is
// not part of a character as \xNN. An error quotes what a client sent, and a client cannot read an
// answer whose strings are no UTF-8.
std::string as_utf8(std::string_view text);

}  // namespace leat
