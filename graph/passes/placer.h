// place: which device runs which node.
//
//  1. Nodes that must stay together form a set: those that `_class` ties ("loc:@other"), and both
//     ends of an edge into an input that is a variable (a ref) or a resource.
//  2. The requests of a set's nodes are merged. Where they contradict each other that is an error;
//     soft placement drops type and id of the weaker request (a variable's own is the strongest),
//     never job, replica or task.
//  3. Candidates are the devices that the request matches and that have kernels for all nodes of
//     the set. Without any, soft placement drops type and id of the request; still none is an
//     error.
//  4. The first candidate is taken: those of the dialled task first, then GPUs before CPUs, then by
//     name.
//  5. A node without inputs and with one output that is no variable (a constant) joins its
//     consumers if these share a device that can run it. Shape, Size and Rank follow their input. A
//     feed goes where it is consumed.
//
// A node that has its device already keeps it, and so does its set. Every node gets the reason in
// placement_reason. INVALID_ARGUMENT "Cannot assign a device for operation NAME: …" tells who asked
// for what, what ties the nodes together, which kernels exist, and which devices; all such nodes in
// one message.
#pragma once

#include "graph/passes/pipeline.h"

namespace leat {

// Places what a smaller graph must not move: the sets of more than one node and all stateful nodes
// of a whole graph (the session's), so that every step that is pruned from it agrees about them.
// What cannot be placed is left for the step that needs it, which then fails. Call it again after
// the graph has grown: placed nodes stay.
void place_stateful(Graph& graph, const PlacementOptions& options);

}  // namespace leat
