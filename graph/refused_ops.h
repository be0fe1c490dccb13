// Ops that graphs contain and that Leat does not run: they are accepted, and a step that needs one
// is told what to do.
#pragma once

#include <string_view>

namespace leat {

// Why an op is refused and what to do instead; empty if it is not refused.
std::string_view refusal(std::string_view op);

}  // namespace leat
