// TestGate(x) -> y: an op that holds its step until the test opens the gate. For tests of events
// during a step: a lost task, a deadline, a close.
#pragma once

#include <chrono>
#include <string>

#include "graph/graph.h"

namespace leat {

// y = x, once open_gate(name) has been called. Placed by the current device scope.
Output gate(Output x, const std::string& name);

// Waits until a step reaches the gate; false if none arrives in time.
bool wait_at_gate(const std::string& name,
                  std::chrono::milliseconds limit = std::chrono::seconds(30));
// Releases the steps that wait there.
void open_gate(const std::string& name);

}  // namespace leat
