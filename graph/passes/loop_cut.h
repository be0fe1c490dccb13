// Cuts the parts of a while loop, its condition and its body, out of the graph.
#pragma once

#include <set>
#include <string>
#include <vector>

#include "graph/loops/loop_frame.h"
#include "graph/passes/pipeline.h"

namespace leat {

// A value of the graph around the loop that its parts use. `read`: a read in every iteration that
// runs once before the loop instead (LoopFrame::is_early_read, is_brought_read); `value` is then
// the read itself, or the handle of its variable.
struct Captured {
  Output value;
  const Node* read = nullptr;

  bool operator==(const Captured& other) const {
    return same(value, other.value) && read == other.read;
  }
};

// A graph of its own, whose `_Feed` nodes (LoopFeed, loops.h) stand for loop variables and for
// captured values. Constants, variables and queues are copied along.
struct LoopPart {
  Graph graph;
  std::vector<std::string> endpoints;  // "node:index" of it: the predicate, the next values, none
};

struct LoopCut {
  LoopPart condition, body;
  LoopPart last;  // without endpoints: what runs once more when the condition ends the loop
  std::vector<Captured> captured;
  std::set<int> references;  // ids of variables that the parts have by reference
};

// The parts are simplified. INVALID_ARGUMENT if the loop uses a value that no iteration has yet.
LoopCut cut_loop(const LoopFrame& frame, Simplify extent);

}  // namespace leat
