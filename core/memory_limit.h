// How much memory this process may ever have, whatever is free at the moment: for limits that are
// set once. What it can have now is in host_memory.h.
#pragma once

#include <cstdint>

namespace leat {

// What `ulimit -v` allows, in bytes; the largest number if it allows any.
uint64_t address_space_limit();

// The least of what the machine has, what the control groups of the process allow, and its address
// space (ulimit -v).
uint64_t host_memory_limit();

// Bytes of a message that a task takes. What is in it is copied out of it, so half of the memory;
// gRPC would collect a longer one, and end the process when the memory does not suffice.
uint64_t largest_message();

}  // namespace leat
