// Graphs as files that TensorFlow's programs read and write: GraphDefs.
#pragma once

#include <string>

#include "graph/graph.h"

namespace leat {

// Writes the graph as a GraphDef: as text if the path ends in ".pbtxt", else binary. An existing
// file is replaced as a whole. As tf.io.write_graph; a file that cannot be written is the error of
// its reason, with the path.
void write_graph(const Graph& graph, const std::string& path);

// The graph in such a file. Its Outputs have names; collections, which optimizers and Savers use,
// are not part of a GraphDef.
//   write_graph(graph, "model.pb");
//   const Graph model = read_graph("model.pb");
//   const Output logits = model.output("logits/BiasAdd");
// NOT_FOUND if there is no such file, or for ops that this build does not know; INVALID_ARGUMENT,
// with all problems, if it is not a GraphDef. Warnings go to standard error.
Graph read_graph(const std::string& path);

}  // namespace leat
