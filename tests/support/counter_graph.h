// The smallest graph with state, for many cluster tests.
#pragma once

#include "graph/ops.h"

namespace leat {

// On the device of the scope: a float scalar w, "init" (w := start) and "add" (w += 1). Returns w.
inline Output add_counter(Graph& graph, float start = 0) {
  const Output w =
      graph.add({.op = "VariableV2", .name = "w", .attrs = {{"shape", Shape{}}, {"dtype", f32}}})
          .output();
  graph.add(
      {.op = "Assign", .name = "init", .inputs = {w, constant(graph, Tensor::scalar(start))}});
  graph.add(
      {.op = "AssignAdd", .name = "add", .inputs = {w, constant(graph, Tensor::scalar(1.0f))}});
  return w;
}

}  // namespace leat
