// Ops that Leat reads but does not run. A step that needs one fails with advice on what to do
// instead.
#pragma once

#include <string_view>

namespace leat {

// Why an op is refused and what to do instead; empty if it is not refused.
std::string_view refusal(std::string_view op);

// All of them, as text (refused_ops_table.cc).
extern const std::string_view refused_ops_table;

}  // namespace leat
