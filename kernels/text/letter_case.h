// Upper and lower case of Unicode texts.
#pragma once

#include <string>
#include <string_view>

namespace leat {

// Of UTF-8; bytes that are none become U+FFFD. As Unicode's default mappings, which know no
// language: "ß" ↔ "SS" upwards only, a Σ that ends a word becomes ς. UNIMPLEMENTED for the letters
// that become two or three others (ligatures such as ﬁ, İ, some Greek and Armenian ones; not ß).
std::string lower_case(std::string_view text);
std::string upper_case(std::string_view text);

}  // namespace leat
