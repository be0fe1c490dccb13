// Texts of users in messages.
#pragma once

#include <string>
#include <string_view>

namespace leat {

// In quotes; what does not print is escaped, and the end of a long text left out.
std::string quoted(std::string_view text);

}  // namespace leat
