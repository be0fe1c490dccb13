// The edges of a graph file as a picture needs them: each Send/Recv pair becomes one transfer.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "graph/import/graph_def.h"

namespace leat::viz {

// One value that crosses between devices once per step.
struct Transfer {
  std::string tensor;            // "dense/kernel/read:0"; "^dense/update" for a signal
  int64_t edge = -1;             // the number of its Send and Recv; -1 if none
  DType dtype = DType::invalid;  // invalid: a signal without payload
  Shape shape = Shape::unknown();
  int64_t bytes() const;  // -1: unknown
};

struct Wire {
  int from = 0, to = 0;  // nodes
  bool is_control = false;
  int transfer = -1;  // index in Wiring::transfers: this wire crosses devices
};

struct Wiring {
  const std::vector<WrittenNode>& nodes;
  std::vector<std::string> device_of;  // of every node: complete name, as DeviceName writes it
  std::vector<bool> is_hidden;         // a Send or Recv whose partner exists
  std::vector<Wire> wires;             // between nodes that are not hidden
  std::vector<Transfer> transfers;     // several wires may share one
  std::vector<std::string> mistakes;   // in the graph, for people
};

// In a graph that is placed but not partitioned, an edge between devices is a transfer too: the
// partitioner would cut there. `mistakes` lists inputs that no node produces, duplicate names, and
// nodes that feed themselves; missing inputs are skipped.
Wiring read_wiring(const std::vector<WrittenNode>& nodes);

// The dtype of a node's output, as far as its attributes determine it.
DType output_dtype(const WrittenNode& node);
Shape output_shape(const WrittenNode& node, int output);

// -1: unknown.
int64_t bytes_of(DType dtype, const Shape& shape);

}  // namespace leat::viz
