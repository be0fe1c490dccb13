// The text around a node's error: op, device, the user's line, and the node's name.
#pragma once

#include "core/device.h"
#include "core/error.h"
#include "core/state/variable.h"
#include "graph/graph.h"

namespace leat {

// TensorFlow's words, the variable's place, and for nodes of a C++ program the line and the remedy.
Error uninitialized(const Variable& variable, const Node& reader, const Device& device);

// The status of the exception being handled as one of this node, its message followed by
// " (Op on device, file:line)", unless it has a node already.
Status status_at(const Node& node, const Device& device);
Status status_at(const Node& node, const Device& device, Status status);

}  // namespace leat
