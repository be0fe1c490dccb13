// Functions of a GraphDef's library: calls of them, and conditions and loops that are made of them
// ("control flow v2"), become plain nodes before anything else looks at the graph.
//
//   y = PartitionedCall(x)[f]      →  f's nodes, called "y/call/…"
//   y = If(p, x)[then, else]       →  Switch for each input, "y/then/…", "y/else/…", Merge
//   y = Case(i, x)[b0, b1, …]      →  the same, with a predicate for each branch
//   y = While(x)[cond, body]       →  Enter, Merge, "y/cond/…", Switch, "y/body/…", NextIteration,
//                                     Exit; what the body hands on unchanged is entered as constant
//   dx = SymbolicGradient(x, dy)[f] → f's nodes and their gradients, called "dx/gradient/…"
//
// In each case an Identity or IdentityN (NoOp, if there is no value) called "y" gives the results,
// so that they can be used and fetched by name. It waits for all side effects of the function.
// Other nodes that have functions, such as those of Dataset.map, get them as attributes with
// everything inlined (core/function.h reads them):
//
//   MapDataset(…)[f]  →  MapDataset(…)[f, _leat_f: GraphDef, _leat_f_arguments: 1,
//                                      _leat_f_captured: 1, _leat_f_captured_from: 1 (an input),
//                                      _leat_f_handles: those of the arguments that are resources,
//                                      _leat_f_results: "node:0" …, _leat_f_effects: "node" …,
//                                      _leat_f_variables: those of the arguments that are variables
//                                      of the graph, which the function's graph then has, too]
//
// After tensorflow/core/common_runtime/lower_functional_ops.cc, and Yu et al.,
// "Dynamic Control Flow in Large-Scale Machine Learning", EuroSys 2018.
#pragma once

namespace tensorflow {
class GraphDef;
}

namespace leat {

class Graph;

// INVALID_ARGUMENT, with the node, for a function that is not in the library, has other arguments
// or calls itself, more than 200,000 nodes of functions, calls nested deeper than 100, or a loop
// none of whose variables has a value. `def` extends `graph`: functions may capture its variables.
void inline_functions(tensorflow::GraphDef& def, const Graph& graph);

// Removes what a client must not write: drops functions as attributes; fails with INVALID_ARGUMENT
// for the runtime's own ops in functions.
void drop_written_functions(tensorflow::GraphDef& def);

}  // namespace leat
