// Upper and lower case of Unicode text.
#pragma once

#include <string>
#include <string_view>

namespace leat {

// For UTF-8; invalid bytes become U+FFFD. Follows Unicode's default mappings, which are independent
// of language: "ß" becomes "SS" in upper case only, a Σ at the end of a word becomes ς.
// UNIMPLEMENTED for letters that become two or three others (ligatures such as ﬁ, İ, some Greek and
// Armenian ones; not ß).
std::string lower_case(std::string_view text);
std::string upper_case(std::string_view text);

}  // namespace leat
