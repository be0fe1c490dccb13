// Files that hold a graph, told apart by their bytes: a GraphDef, a MetaGraphDef (*.meta), a
// SavedModel (saved_model.pb), each binary or text, and event files. Internal to the readers of
// graphs.
#pragma once

#include <string_view>

namespace tensorflow {
class GraphDef;
}

namespace leat {

// INVALID_ARGUMENT names `origin` (a path), what the file seems to be instead and, for text, the
// line.
void read_graph_file(std::string_view bytes, std::string_view origin, tensorflow::GraphDef& graph);

}  // namespace leat
