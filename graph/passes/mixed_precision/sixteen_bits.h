// Which nodes of a graph compute in 16 bits.
#pragma once

#include <functional>
#include <vector>

#include "graph/graph.h"
#include "graph/passes/mixed_precision/precision_rules.h"
#include "graph/passes/simplify/simplify.h"

namespace leat {

// How much of a value's precision the step may drop.
enum class Precision : uint8_t {
  free,   // a variable, a constant, random numbers: rounded where a value of 16 bits meets it
  exact,  // keeps float32: what a client feeds, statistics, losses, and what is computed from them
  low,    // has 16 bits
};

struct PrecisionOptions {
  DType low = DType::invalid;  // bf16 or f16
  // Does the device of the node have a kernel for it with type attribute "T" = `low`?
  std::function<bool(const Node& node)> has_kernel;
  // By number of the values that the graph's loop captures; empty for the graph of a step.
  std::vector<Precision> captured = {};
};

// By node id. A product is low. What follows is low between low values: at least one of its
// operands is low, none is exact, and a user is low. `graph` is in topological order. Endpoints of
// `kept` keep their dtypes outside; so a node with several outputs stays as it is.
std::vector<Precision> find_precisions(const Graph& graph, const KeptNames& kept,
                                       const PrecisionOptions& options);
// That of a value: some outputs of a low node stay float32.
Precision precision_of(const Output& value, const std::vector<Precision>& precisions);

// By flat index: is the type of the input (or output) the attribute "T"?
std::vector<bool> typed_inputs(const Node& node);
std::vector<bool> typed_outputs(const Node& node);

}  // namespace leat
