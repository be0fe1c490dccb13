// What the nodes of a model cost, and where to cut it into stages.
#pragma once

#include <cstdint>
#include <limits>
#include <span>
#include <vector>

#include "graph/graph.h"

namespace leat {

// By id of the graph's nodes.
struct NodeCosts {
  std::vector<double> seconds;
  std::vector<double> bytes;  // of all outputs of the node
};

// Runs `targets` a few times in this process, with initial values of the variables and the graph's
// own input, and takes the least time of each node. Nodes that do not run, or that the compiler
// folds into others, cost nothing. Errors are those of the run.
NodeCosts measured_costs(const Graph& graph, const std::vector<Output>& targets);

// From the shapes alone, where unknown extents count as 1: two operations for each multiplication
// of a matrix product or a convolution, else one for each number that a node makes; 10⁹ operations
// per second. Only proportions matter to a cut.
NodeCosts estimated_costs(const Graph& graph);

// A cut that is not allowed.
inline constexpr double no_cut = std::numeric_limits<double>::infinity();

// Cuts items 0, 1, …, n - 1 into stages, in this order, so that the most expensive stage costs
// least: the sum of its items and of the cuts at its borders. before[i]: what a cut before item i
// costs, or no_cut. Returns where each stage begins; the first is 0. INVALID_ARGUMENT if there are
// fewer allowed cuts than needed. Of more than 1,000 places, the cheapest of each thousandth of the
// cost are considered.
std::vector<size_t> cut_into_stages(std::span<const double> costs, std::span<const double> before,
                                    int stages);

}  // namespace leat
