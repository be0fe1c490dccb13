// How much memory this process may ever have, however much is free now: for limits that are set
// once. host_memory.h has what is available now.
#pragma once

#include <cstdint>

namespace leat {

// The `ulimit -v` in bytes; the largest number if there is no limit.
uint64_t address_space_limit();

// The smallest of the machine's memory, the limit of the process's control groups, and its address
// space (ulimit -v).
uint64_t host_memory_limit();

// The largest message, in bytes, that a task accepts: half of the memory, because its content is
// copied. gRPC would collect a longer one, and end the process when memory runs out.
uint64_t largest_message();

}  // namespace leat
