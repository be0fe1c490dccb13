// Running one node by itself, outside of any session: constant folding, and the test of every op.
#pragma once

#include <span>
#include <vector>

#include "graph/graph.h"

namespace leat {

// The outputs of `node` for these inputs (host tensors), computed by its CPU kernel on the calling
// thread. A ref input is copied first; a ref output is that copy as the kernel left it. Per-node
// kernel state starts anew in every call. Throws what the kernel throws, INVALID_ARGUMENT without a
// CPU kernel, UNIMPLEMENTED for ops that wait (queues) or whose outputs can be dead.
std::vector<Tensor> evaluate(const Node& node, std::span<const Tensor> inputs);

}  // namespace leat
