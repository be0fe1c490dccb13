// How much memory this process has, and how much it can still have: asked before a large buffer is
// made, since Linux promises more than there is, and ends the process that believes it.
#pragma once

#include <cstdint>

namespace leat {

// Bytes that the machine, and the control groups that the process is in, can give without taking
// anything from a process. Of that, `promised` are already spoken for (promised_memory.h); they are
// part of the address space that the process has (`ulimit -v`), so there they do not count again.
// Reads files of the kernel: about 50 µs.
uint64_t available_host_memory(uint64_t promised = 0);
// Bytes of this process that lie in memory.
int64_t resident_host_memory();

}  // namespace leat
