// Writes functions that nodes carry as attributes (core/function.h) as FunctionDefs of a TensorFlow
// library. functions.h reads them.
#pragma once

#include "graph/graph.h"

namespace tensorflow {
class FunctionDefLibrary;
}

namespace leat {

bool has_functions(const Node& node);
// Adds the node's functions, and the functions of these, to the library: those that capture
// nothing, as dataset builders make them.
void write_functions(const Node& node, tensorflow::FunctionDefLibrary& library);

}  // namespace leat
