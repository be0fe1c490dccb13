// The parts of simplify, each a pass of its own.
#pragma once

#include <string>
#include <string_view>
#include <unordered_set>
#include <vector>

#include "graph/passes/pipeline.h"

namespace leat {

// Names that must be in the graph afterwards: those of the step's endpoints, and those that
// `_class` attributes refer to.
struct KeptNames {
  KeptNames(const Graph& graph, const StepSignature& signature);

  bool contains(const Node& node) const {
    return endpoints.contains(node.name) || anchors.contains(node.name);
  }

  std::unordered_set<std::string> endpoints;
  std::unordered_set<std::string> anchors;
};

// Depends on nothing but its inputs and changes nothing: no state, no variables, no control flow,
// no feed, no transfer.
bool is_pure(const Node& node);
// Passes deadness on in its own way: Switch, Merge, and the ops of loops.
bool is_control_flow(const Node& node);

// Removes control inputs of nodes that only compute, for others that only compute, where no effect
// and no read of state would come earlier without them. False if there are none.
bool drop_needless_waits(Graph& graph);
// Removes Identity and NoOp where this changes neither values nor waiting.
void remove_identities(Graph& graph, const KeptNames& kept);
// Replaces nodes with constant inputs, and the shapes of tensors of known shape, by constants.
void fold_constants(Graph& graph, const KeptNames& kept);
// Keeps one of several nodes that compute the same on one device: the assigned one, or as long as
// there is none, the one they ask for.
void merge_common_subexpressions(Graph& graph, const KeptNames& kept);
// Replaces nodes by cheaper ones of equal values, and passes on what a node leaves as it is
// (arithmetic.cc, movement.cc). False if there was nothing to do.
bool rewrite_arithmetic(Graph& graph, const KeptNames& kept);
// Computes before a `_Loop` what each of its iterations would compute from values that it does not
// change. False if there is nothing of the kind.
bool hoist_loop_invariants(Graph& graph);
// Stops what has no effect and whose values nobody reads: it becomes a NoOp that waits for its
// inputs, or an Identity of a branch's value. False if there is nothing of the kind.
bool drop_unread(Graph& graph, const KeptNames& kept);
// Removes what no endpoint needs.
void remove_unused(Graph& graph, const KeptNames& kept);

// Sorted by id, without repetitions.
void sort_by_id(std::vector<Node*>& nodes);

}  // namespace leat
