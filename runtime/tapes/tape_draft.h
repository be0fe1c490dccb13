// A tape under construction, passed between the passes of compile_tape().
#pragma once

#include <vector>

#include "runtime/tapes/segment_values.h"
#include "runtime/tapes/tape.h"

namespace leat {

// A node is an index into SegmentPlan::nodes.
struct TapeDraft {
  // One piece of memory: values that are views of each other share it.
  struct Root {
    Address address;
    DType dtype = DType::invalid;
    Shape shape;
    size_t bytes = 0;
    bool on_host = true;
    int first = -1, last = -1;  // positions in `sequence`
    bool is_result = false;
    int merged_into = -1;  // overwrites another root's memory
  };

  const SegmentPlan& segment;
  Device& device;
  SegmentValues values;

  std::vector<bool> is_needed;       // by node
  std::vector<BoundKernel> kernels;  // by node; only of live nodes
  std::vector<bool> is_copied;       // by node: its views became copies
  std::vector<int> sequence;         // live nodes, in execution order
  std::vector<Root> roots;

  bool is_on_host() const { return device.type() == DeviceType::cpu; }
  int count() const { return static_cast<int>(segment.nodes.size()); }
  const Node& node(int n) const { return *segment.nodes[n].node; }
  // The node runs: it is needed, and its values are not known yet.
  bool is_live(int n) const { return is_needed[n] && !values.is_folded[n]; }
  bool has_instruction(int n) const { return kernels[n].function != nullptr || is_copied[n]; }

  int num_inputs(int n) const { return static_cast<int>(segment.nodes[n].inputs.size()); }
  const SegmentValue& input(int n, int i) const { return values.of(segment.nodes[n].inputs[i]); }
  const SegmentValue& result(const SegmentPlan::Result& result) const {
    return values.of_node(result.node)[result.output];
  }
  // Others wait for it alone, and it is large enough to go on its way while the tape runs on. (What
  // is small goes together with what else there is.)
  bool leaves_early(const SegmentPlan::Result& leaving) const {
    return (!leaving.sends.empty() || leaving.is_marked) &&
           result(leaving).dtype != DType::string && result(leaving).bytes() >= size_t{64} << 10;
  }
  bool is_output_on_host(int n, int output) const {
    return is_on_host() || contains(segment.nodes[n].kernel->host_outputs, output);
  }

  int new_root(Root root) {
    roots.push_back(std::move(root));
    return static_cast<int>(roots.size()) - 1;
  }
  // The root that finally owns the memory.
  int resolved(int root) const {
    while (roots[root].merged_into >= 0) root = roots[root].merged_into;
    return root;
  }
  bool is_variable(int root) const {
    return root >= 0 && roots[root].address.kind == Address::Kind::variable;
  }
};

// Finds `sequence`, the root of every value, and the views that must be copies. A read of a
// variable that is not ordered after a write goes before it. A value must never change after the
// node that read it.
void find_order(TapeDraft& draft, TapeHints& hints);

// Assigns each root its address, and the tape its memory. Returns the addresses of the workspaces,
// by position in `sequence`.
std::vector<Address> place_memory(TapeDraft& draft, Tape& tape, TapeHints& hints);

}  // namespace leat
