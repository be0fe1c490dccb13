// What nodes and name scopes may be called: TensorFlow's rule.
#pragma once

#include <string_view>

namespace leat {

// Segments of [A-Za-z0-9.][A-Za-z0-9_.\-/]*, joined by '>'. `allow_internal`: a leading '_' marks
// the runtime's own.
bool is_node_name(std::string_view name, bool allow_internal);

// For errors, after "'x' is not a node name: ".
inline constexpr std::string_view node_name_rule =
    "names consist of letters, digits and _ . - / >, and start with a letter, a digit or a dot";

}  // namespace leat
