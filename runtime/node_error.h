// What an error of a node says beside what went wrong: op, device, the user's line, the node's
// name.
#pragma once

#include "core/device.h"
#include "core/error.h"
#include "core/variable.h"
#include "graph/graph.h"

namespace leat {

// TensorFlow's words, where the variable is, and for nodes of a C++ program its line and what to
// do.
Error uninitialized(const Variable& variable, const Node& reader, const Device& device);

// The status of the exception being handled as one of this node, its message followed by
// " (Op on device, file:line)", unless it has a node already.
Status status_at(const Node& node, const Device& device);
Status status_at(const Node& node, const Device& device, Status status);

}  // namespace leat
