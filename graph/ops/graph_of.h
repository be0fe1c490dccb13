// For the functions of this folder.
#pragma once

#include "graph/graph.h"

namespace leat {

inline constexpr const char* empty_output =
    "is an empty Output: it was never set to a result of the graph, or it is a gradient that "
    "gradients() did not find, because no path leads from that x to a y";

// The graph that an operand belongs to. INVALID_ARGUMENT, with the user's line, for an empty
// Output.
inline Graph& graph_of(Output x, Location at) {
  check(bool{x}, "an operand (", at, ") ", empty_output);
  return x.graph();
}

}  // namespace leat
