// A worker's checks on a graph before it compiles it. Our own master sends graphs that its passes
// have verified; another process may send anything.
#pragma once

#include "distributed/worker/worker_client.h"

namespace leat {

// INVALID_ARGUMENT, with the edge, fetch or node at fault, unless
// * every edge has its own id and begins or ends on this task, and the ends on this task are one
//   _Send and one _Recv, in the partitions of the edge's devices, with the edge's dtype and shape;
// * every _Send and _Recv belongs to an edge;
// * every node is on the device of its partition;
// * every fetch is an output of a partition.
// Nodes' inputs, dtypes and attributes were checked when the graph was read.
void check_registration(const RegisterGraph& graph, const TaskName& self);

}  // namespace leat
