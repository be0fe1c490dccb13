// UTF-8, character by character (The Unicode Standard, table 3-7).
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

namespace leat {

struct Utf8Character {
  size_t bytes;                   // at least 1
  std::optional<char32_t> value;  // none if the bytes are invalid
};

// The first character of a non-empty text. For invalid bytes: the longest prefix that could begin a
// character.
Utf8Character next_utf8(std::string_view text);

// A surrogate becomes U+FFFD.
void append_utf8(char32_t character, std::string& out);

// The text as valid UTF-8, for strings of protobuf messages: each invalid byte becomes \xNN. An
// error quotes what a client sent, and a client cannot read an answer whose strings are not UTF-8.
std::string as_utf8(std::string_view text);

}  // namespace leat
