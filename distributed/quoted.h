// User texts in messages.
#pragma once

#include <string>
#include <string_view>

namespace leat {

// Quotes the text, escapes unprintable characters, and cuts a long text.
std::string quoted(std::string_view text);

}  // namespace leat
