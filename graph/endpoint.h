// Results of nodes as GraphDefs write them: "node" for the first, "node:1" for others.
#pragma once

#include <string>
#include <string_view>

#include "core/error.h"
#include "graph/graph.h"

namespace leat {

inline std::string endpoint_of(const std::string& node, int index) {
  return index == 0 ? node : concat(node, ":", index);
}
inline std::string endpoint_of(const Output& output) {
  return endpoint_of(output.node->name, output.index);
}

// "node:1" → "node"; also of "argument:output:1", as functions write it.
inline std::string_view node_of(std::string_view endpoint) {
  return endpoint.substr(0, endpoint.find(':'));
}
// "node:1" → "^node"
inline std::string signal_of(std::string_view endpoint) { return concat("^", node_of(endpoint)); }

}  // namespace leat
