// Graphs as text and pictures, and back: one node a line.
//   logits = MatMul(hidden, w, transpose_a=true) @/job:worker/task:0/device:CPU:0, ^init :
//   float[?,10]
// Second outputs are written split:1; control inputs ^init. Attributes as in op_schema.h.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "graph/graph.h"

namespace leat {

struct DumpOptions {
  bool shapes = false;  // ": float[?,10]" at the end
  bool devices = true;  // "@…": the assigned device, else the requested one
  // only those that differ from the op's default and do not follow from the inputs
  bool attrs = true;
  int64_t elements = 64;  // of a tensor; larger ones end in "…", which parse() refuses
};
// Nodes in topological order, ties by name, so that equal graphs have equal text.
std::string dump(const Graph& graph, const DumpOptions& options = {});

// The inverse, for tests and small examples: "a = Placeholder(dtype=float) @A;  b = Relu(a) @B,
// ^a". A one-letter device stands for /job:<letter>/task:0/device:CPU:0 (dump() writes it so, too);
// a device is requested and, if complete, also assigned. '#' starts a comment. INVALID_ARGUMENT
// with line and column.
Graph parse(std::string_view text);

// Graphviz DOT: devices as boxes, name scopes as boxes within; control edges dotted, _Send to _Recv
// dashed. tools/viz draws the folded, readable form.
std::string to_dot(const Graph& graph);

}  // namespace leat
