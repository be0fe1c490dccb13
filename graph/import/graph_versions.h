// What follows from the version of TensorFlow that wrote a GraphDef, and what Leat writes. Numbers
// are those of GraphDef.versions: until 2019 each release that changed something took the next one;
// since then each day does. README.md lists what depends on them.
#pragma once

#include <string_view>

namespace tensorflow {
class GraphDef;
}

namespace leat {

class Graph;

// INVALID_ARGUMENT if the graph was not made for readers such as this one.
void check_versions(const tensorflow::GraphDef& def);

// An op that graphs of that version or a later one do not have.
struct Deprecation {
  int version = 0;
  std::string_view advice;  // "Use TopKV2 instead"
};
const Deprecation* deprecation(std::string_view op);  // null if there is none
// UNIMPLEMENTED, in TensorFlow's words.
void check_not_deprecated(std::string_view op, int producer);

// The producer to write into a GraphDef with this graph's nodes, so that it can be read again.
int producer_of(const Graph& graph, size_t first_node);

// Rewrites nodes whose meaning or form has changed as they are written today. `def` extends `graph`
// and has no functions left.
void write_as_today(tensorflow::GraphDef& def, const Graph& graph);

}  // namespace leat
