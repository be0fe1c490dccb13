// Texts that go where only UTF-8 may: the strings of protobuf messages.
#pragma once

#include <string>
#include <string_view>

namespace leat {

// The text with each byte that is not part of a UTF-8 character as \xNN: an error quotes what a
// client sent, and a client cannot read an answer whose strings are no UTF-8.
std::string as_utf8(std::string_view text);

}  // namespace leat
