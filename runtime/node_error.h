// What an error of a node says beside what went wrong: op, device, the user's line, the node's
// name.
#pragma once

#include "core/device.h"
#include "core/error.h"
#include "graph/graph.h"

namespace leat {

// The status of the exception being handled, followed by " (Op on device, file:line)" and
// "\n\t [[{{node NAME}}]]", unless it names a node already.
Status status_at(const Node& node, const Device& device);
Status status_at(const Node& node, const Device& device, Status status);

}  // namespace leat
