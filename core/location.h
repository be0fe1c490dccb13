// The place in the user's program where a node was made: graph errors print it.
#pragma once

#include <ostream>

namespace leat {

// Default arguments are evaluated at the call, so `Location at = here()` as the last parameter of a
// builder function records its caller's line. (clang-tidy 14 cannot read std::source_location.)
struct Location {
  const char* file = "";  // a string literal; empty when unknown (an imported graph)
  int line = 0;
  bool is_known() const { return line > 0; }
};

// "model.cc:41"
inline std::ostream& operator<<(std::ostream& out, const Location& location) {
  return out << location.file << ':' << location.line;
}

constexpr Location here(const char* file = __builtin_FILE(), int line = __builtin_LINE()) {
  return {file, line};
}

}  // namespace leat
