// place: which device runs which node.
//
//  1. Nodes that must stay together form a set: those that `_class` ties ("loc:@other"), and both
//     ends of an edge into an input that is a variable (a ref) or a resource.
//  2. The requests of a set's nodes are merged. Where they contradict each other that is an error;
//     soft placement drops type and id of the weaker request (a variable's own is the strongest),
//     never job, replica or task.
//  3. Candidates are the devices that the request matches and that have kernels for all nodes of
//     the set. Without any, soft placement drops type and id of the request; still none is an
//     error. If the set has state, nodes that only `_class` ties to it do not decide: a variable's
//     first value that no GPU can compute is computed on the task's CPU.
//  4. The first candidate is taken: those of the dialled task first, then GPUs before CPUs (or
//     after them, with Gpus::avoid), then by name.
//  5. A node without inputs and with one output that is no variable (a constant) joins its
//     consumers if these share a device that can run it. Shape, Size and Rank follow their input. A
//     feed goes where it is consumed.
//
// A node that already has a device keeps it, and so does its set. Every node gets the reason in
// placement_reason. INVALID_ARGUMENT "Cannot assign a device for operation NAME: …" lists the
// requests, what ties the nodes together, the kernels and the devices; one message covers all such
// nodes.
#pragma once

#include "graph/passes/pipeline.h"

namespace leat {

// Places the sets of more than one node and all stateful nodes of a whole graph (the session's), so
// that all steps pruned from it agree on their devices. A node that cannot be placed is skipped;
// the step that needs it fails. Call it again after the graph has grown: placed nodes stay.
void place_stateful(Graph& graph, const PlacementOptions& options);

}  // namespace leat
