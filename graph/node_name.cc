#include "graph/node_name.h"

#include <cctype>

namespace leat {

bool is_node_name(std::string_view name, bool allow_internal) {
  bool is_start = true;
  if (allow_internal && name.starts_with('_')) name.remove_prefix(1);
  for (const char c : name) {
    const bool is_first = std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '.';
    if (c == '>' && !is_start) {
      is_start = true;
    } else if (is_first || (!is_start && (c == '_' || c == '-' || c == '/'))) {
      is_start = false;
    } else {
      return false;
    }
  }
  return !is_start;
}

}  // namespace leat
