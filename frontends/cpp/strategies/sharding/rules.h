// Which states of its inputs an op can work with, and what its outputs are then: a table of ops,
// one rule each. An op without an entry runs on each worker with replicated inputs.
#pragma once

#include <functional>
#include <vector>

#include "frontends/cpp/strategies/sharding/state.h"
#include "graph/graph.h"

namespace leat::sharding {

// The worker for which an op is being made; the scopes of its nodes are open.
struct Shard {
  Graph& graph;
  int index;
  int count;
};

// What is made on a worker instead of the op itself: of the op's node in the unsharded graph and
// the worker's inputs, the outputs.
using Emit = std::function<std::vector<Output>(const Shard&, const Node&, std::vector<Output>)>;

// One legal way to run a node.
struct Signature {
  std::vector<State> inputs;   // by input
  std::vector<State> outputs;  // by output
  Emit emit = {};              // none: the op, with its attributes
};

// The signatures of a node of the unsharded graph for N workers, from its op, attributes and
// shapes; the first has replicated inputs and outputs. Axes whose extent is unknown or no multiple
// of N are not split.
std::vector<Signature> signatures(const Node& node, int n);

// What a rule adds to: the node, and its signatures so far.
class Rule {
 public:
  Rule(const Node& node, int n, std::vector<Signature>& out) : node(node), n(n), out_(out) {}

  const Shape& in(int i) const { return node.inputs[static_cast<size_t>(i)].shape(); }
  const Shape& result(int i = 0) const { return node.outputs[static_cast<size_t>(i)].shape; }
  int inputs() const { return static_cast<int>(node.inputs.size()); }
  bool splits(const Shape& shape, int axis) const { return can_split(shape, axis, n); }
  // All others are replicated.
  void add(std::vector<std::pair<int, State>> inputs, std::vector<std::pair<int, State>> outputs,
           Emit emit = {}) const;
  // The inputs are all partial, and so is the output: for what is linear in all of them together.
  void add_all_partial() const;

  const Node& node;
  const int n;

 private:
  std::vector<Signature>& out_;
};
using RuleFunction = void (*)(const Rule&);

// The rule of an op; null if the table has none.
RuleFunction rule_of(const OpDef& op);
// The parts of the table, each in its own file.
RuleFunction elementwise_rule_of(const OpDef& op);  // rules_elementwise.cc
RuleFunction product_rule_of(const OpDef& op);      // rules_products.cc
RuleFunction array_rule_of(const OpDef& op);        // rules_arrays.cc
RuleFunction row_rule_of(const OpDef& op);          // rules_rows.cc

// ---- For rules ----
// The op itself, of those inputs.
std::vector<Output> same_op(Graph& graph, const Node& node, std::vector<Output> inputs);
// A vector of int32 or int64.
Tensor integers(DType dtype, const std::vector<int64_t>& values);
std::vector<int64_t> integers(const Tensor& vector);
// Emits the op with input `i`, which is a shape, changed to that of a worker's part of a tensor
// split along `axis`. Extents of -1 stay.
Emit with_local_extent(int i, int axis, int64_t extent, int n);

}  // namespace leat::sharding
