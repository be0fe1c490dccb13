// How a partition is cut: segments, and the boundary nodes between them. Made once per
// RegisteredGraph; then constant.
//
// Two nodes share a segment if they wait for the same things (the boundary nodes upstream of them:
// their wait set) and die of the same things (their dead set). So a segment runs as a whole or not
// at all, and never waits inside.
#pragma once

#include <algorithm>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "core/device.h"
#include "core/kernel.h"
#include "core/state/variable.h"
#include "graph/graph.h"
#include "runtime/plan/node_roles.h"

namespace leat {

// For short lists: a kernel's host_inputs, the flags of an item.
inline bool contains(const std::vector<int>& list, int value) {
  return std::find(list.begin(), list.end(), value) != list.end();
}

// The source of an instruction's input.
struct SegmentSource {
  enum class Kind : uint8_t { local, input, constant, variable };
  Kind kind;
  int index;   // local: a node; input, constant, variable: its number there; all of the segment
  int output;  // local: which output
};

struct SegmentNode {
  const Node* node;
  KernelCopy kernel;  // the one for this device
  std::vector<SegmentSource> inputs;
  std::vector<int>
      after;  // nodes of this segment that must run before: local inputs, control and ref edges
  bool
      is_wanted;  // requested by name or by a control edge: it runs even if nothing uses its output
};

struct SegmentPlan {
  struct Input {
    Output source;
    bool is_by_value;  // its elements decide shapes or are needed in `prepare`: part of the tape's
                       // key
    bool on_host;
  };
  struct Result {
    int node;
    int output;
    // Items that send it to other tasks and wait for nothing else: if it is large, it goes on its
    // way as soon as it is computed, while the segment runs on.
    std::vector<int> sends = {};
    // A collective reads it beside the device's compute stream, from where it is computed on
    // (HasMarks).
    bool is_marked = false;
  };
  struct VariableUse {
    int variable;  // of the plan
    bool is_written;
  };
  std::vector<SegmentNode> nodes;  // inputs before users
  std::vector<Input> inputs;
  std::vector<Result> results;  // values that leave the segment
  bool has_early_uses = false;  // of its results: sends, or marks
  std::vector<VariableUse> variables;
  std::vector<int> constants;  // of the plan
};

// The source of an item's input: a value of the step, a constant, or (handle inputs of `execute`) a
// variable or another resource.
struct ItemSource {
  int slot = -1;
  int constant = -1;
  bool is_on_device = false;  // the constant's copy there
  int variable = -1;
  int resource = -1;
  std::vector<int> dead_on;  // of Merge: the flags that make this input dead
  int arrivals = 0;          // of Merge: completions until this input is available
};

struct Successor {
  int item;
  int merge_input;  // the Merge input that it brings nearer; -1 = an ordinary dependency
};

struct Item {
  ItemKind kind;
  const Node* node = nullptr;       // null: a segment or a copy
  KernelCopy kernel = no_kernel();  // execute, execute_async
  int segment = -1;
  int loop = -1;      // its number among the program's loops
  int resource = -1;  // of an op that finds its state by name (Stage)
  std::vector<ItemSource> inputs;
  std::vector<int> outputs;  // slots, by output; -1 = unused
  std::vector<int> dead_on;  // any of these flags set: the item does not run
  int dead_flag = -1;        // the flag it sets; Switch: output 0's flag, output 1 has the next one
  int dependencies = 0;
  std::vector<Successor> successors;
  std::vector<int> releases;    // slots that it reads
  int64_t edge = -1;            // send, receive
  int first_counter = -1;       // merge: of the step's counters, one per input and two more
  bool goes_to_device = false;  // receive: only copies to the device read it, so it may lie there
  std::string label;            // receive: "edge_7_w", for "what does this step wait for"
};

class Functions;
class NodeStates;

struct ProgramPlan {
  Graph graph;  // the partition, with the reads of variables made explicit; nodes point into it
  Device* device = nullptr;
  Device* host = nullptr;
  std::vector<Item> items;
  std::vector<SegmentPlan> segments;
  std::vector<Tensor> constants;         // host
  std::vector<Tensor> device_constants;  // by constant: a copy there, if an item reads it there
  std::vector<std::shared_ptr<Variable>> variables;
  std::vector<Shape> variable_shapes;  // as declared; may be partial
  std::vector<std::shared_ptr<Resource>> resources;
  int slots = 0, flags = 0, counters = 0, loops = 0;
  std::vector<int> slot_uses;  // how many items and fetches read a slot

  struct Feed {
    std::string name;  // "node:index"
    DType dtype;
    Shape shape;
    Location location;
    int slot;  // -1: nothing reads it
    bool on_host;
  };
  struct Fetch {
    std::string name;
    ItemSource source;  // slot or constant
    const Node* node;
  };
  std::vector<Feed> feeds;
  std::vector<Fetch> fetches;

  std::shared_ptr<Functions> functions;  // called by kernels

  // At most one segment and nothing else, on the host: a step is one call on the caller's thread.
  bool is_straight = false;
  // A part of a step, which waits for the device at its end.
  bool is_part = false;
};

// A part of a loop: where the values are that go into it, by name of the feed, and come out of it.
// In host memory, if they are not in these sets.
struct PartPlaces {
  std::set<std::string> feeds_on_device, fetches_on_device;
};

// Throws if an op has no kernel for the device (all such nodes in one message) or a fetch does not
// exist. `host` is a CPU device that computes values known before a step.
ProgramPlan plan_program(Graph graph, const std::vector<std::string>& fetches, Device& device,
                         Device& host, Containers& containers, NodeStates& node_states,
                         const PartPlaces* part = nullptr);

}  // namespace leat
