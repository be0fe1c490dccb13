// How much memory this process has, and how much it can still get. Ask before you make a large
// buffer: Linux promises more than it has, and kills a process that uses it.
#pragma once

#include <cstdint>

namespace leat {

// Bytes that the machine and the process's control groups can give without taking memory from
// another process. `promised` bytes of them are already claimed (promised_memory.h) and are
// subtracted. They are already part of the process's address space, so they do not count again
// under `ulimit -v`. Reads kernel files: about 50 µs.
uint64_t available_host_memory(uint64_t promised = 0);
// Resident bytes of this process.
int64_t resident_host_memory();

}  // namespace leat
