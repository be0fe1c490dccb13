// Values whose gradient a C++ function makes.
#pragma once

#include <functional>
#include <vector>

#include "graph/graph.h"

namespace leat {

// Gets xs, ys and the gradients of the ys, and adds nodes for those of the xs: as many, none where
// no gradient flows.
using CustomGradient = std::function<std::vector<Output>(
    const std::vector<Output>& xs, const std::vector<Output>& ys, const std::vector<Output>& dys)>;

// The ys, which are functions of the xs; gradients() calls `gradient` in place of what the nodes
// between them have. The function must be valid as long as the process: graphs are copied.
std::vector<Output> with_gradient(const std::vector<Output>& xs, const std::vector<Output>& ys,
                                  CustomGradient gradient, Location at);

// Whether the node is one that with_gradient() has made, and what gradients() calls for it: of the
// gradients of its outputs, none where nothing arrives.
bool has_custom_gradient(const Node& node);
std::vector<Output> custom_gradient_of(Node& node, const std::vector<Output>& dy);

}  // namespace leat
