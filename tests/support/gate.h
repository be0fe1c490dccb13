// TestGate(x) -> y: an op that holds its step until the test opens the gate. For everything that
// happens to a step while it runs: a lost task, a deadline, a close.
#pragma once

#include <chrono>
#include <string>

#include "graph/graph.h"

namespace leat {

// y = x, once open_gate(name) was called. Placed by the current device scope.
Output gate(Output x, const std::string& name);

// Waits until a step stands at the gate; false if none came in time.
bool wait_at_gate(const std::string& name,
                  std::chrono::milliseconds limit = std::chrono::seconds(30));
// Lets those through that stand there.
void open_gate(const std::string& name);

}  // namespace leat
