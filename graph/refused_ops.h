// Ops that graphs contain and that Leat does not run: they are accepted, and a step that needs one
// is told what to do.
#pragma once

#include <string_view>

namespace leat {

// Why an op is refused and what to do instead; empty if it is not refused.
std::string_view refusal(std::string_view op);

// All of them, as text (refused_ops_table.cc).
extern const std::string_view refused_ops_table;

}  // namespace leat
