// DatasetToGraph, DatasetToGraphV2: a dataset as the GraphDef that makes it. The graph knows which
// nodes made the dataset; the dataset does not. So prune() computes the result, and no device runs
// these ops.
#pragma once

#include "graph/graph.h"

namespace leat {

bool is_dataset_to_graph(const Node& node);

// The result of such a node: a string scalar, the GraphDef of all nodes its dataset is made of,
// inputs first, so the last node is the dataset. TensorFlow's has the values of non-constant
// inputs; this one has their nodes, and a Placeholder for each feed. RESOURCE_EXHAUSTED above 2
// GiB.
Tensor dataset_graph(const Graph& graph, const Node& node);

}  // namespace leat
