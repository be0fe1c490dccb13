// What ran when: clocks of traced steps, and Chrome's trace format.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "runtime/session.h"

namespace leat {

int64_t trace_now_ns();   // since the epoch
uint32_t trace_thread();  // the caller's thread id in the operating system
// For a node that ran or, for _Send and _Recv, the transfer.
TraceEvent trace_event(const Node& node, std::string device, int64_t start_ns, int64_t end_ns,
                       int64_t output_bytes);

}  // namespace leat
