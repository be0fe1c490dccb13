// Writing functions that nodes carry as attributes (core/function.h) as TensorFlow's: FunctionDefs
// of a library. Reading them is functions.h.
#pragma once

#include "graph/graph.h"

namespace tensorflow {
class FunctionDefLibrary;
}

namespace leat {

bool has_functions(const Node& node);
// Adds the node's functions, and theirs, to the library: those that capture nothing, as the
// builders of datasets make them.
void write_functions(const Node& node, tensorflow::FunctionDefLibrary& library);

}  // namespace leat
