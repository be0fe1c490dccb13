// One output of a node as text: "node:1". GraphDefs write "node" for the first output.
#pragma once

#include <compare>
#include <optional>
#include <string>
#include <string_view>

#include "core/error.h"
#include "graph/graph.h"

namespace leat {

struct Endpoint {
  std::string_view node;  // into the text that was parsed, or the node's name
  int index = 0;

  // "node" is output 0. None if the text has no node before its last ':', or no number after it.
  static std::optional<Endpoint> parse(std::string_view text);
  static Endpoint of(const Output& output) { return {output.node->name, output.index}; }
  // "w" → "w:0". Leaves other text unchanged, even if parse() rejects it: prune reports that.
  static std::string complete(std::string text);

  std::string short_name() const;  // "node" or "node:1": as GraphDefs write it
  std::string full_name() const;   // "node:0" or "node:1": as steps and errors name it
  bool operator==(const Endpoint&) const = default;
  auto operator<=>(const Endpoint&) const = default;
};

// "node:1" → "node". Also takes "argument:output:1", the form within functions (function_body.cc).
inline std::string_view node_of(std::string_view endpoint) {
  return endpoint.substr(0, endpoint.find(':'));
}
// "node:1" → "^node"
inline std::string signal_of(std::string_view endpoint) { return concat("^", node_of(endpoint)); }

}  // namespace leat
