// DatasetToGraph, DatasetToGraphV2: a dataset as the GraphDef that makes it. Which nodes made it is
// known of the graph, not of the dataset, so prune() gives the result and no device runs these ops.
#pragma once

#include "graph/graph.h"

namespace leat {

bool is_dataset_to_graph(const Node& node);

// What such a node gives: a string scalar, the GraphDef of all that its dataset is made of, inputs
// first, so that the last node is the dataset. TensorFlow's has the values of inputs that are no
// constants; here their nodes are in it, a Placeholder for what is fed. RESOURCE_EXHAUSTED if it
// has more than 2 GiB.
Tensor dataset_graph(const Graph& graph, const Node& node);

}  // namespace leat
