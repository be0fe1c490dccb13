// Ops that graphs contain and that Leat does not run: they are accepted, and a step that needs one
// is told what to do.
#pragma once

#include <string_view>

namespace leat {

// Why an op is refused and what to do instead; empty if it is not refused.
std::string_view refusal(std::string_view op);

// A while loop's Merge has this attribute: what its second input is in the GraphDef
// ("body/NextIteration"). Graphs have no cycles, so that edge is not in the graph.
inline constexpr std::string_view back_edge_attr = "_leat_back_edge";

}  // namespace leat
