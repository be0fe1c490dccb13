// How a task tunes glibc's heaps, which hold gRPC's memory and all small blocks. glibc has up to 8
// heaps per core, and a thread cannot use memory freed in other heaps. Under another malloc these
// functions do nothing.
#pragma once

#include <cstdint>

namespace leat {

// For a process with a task, which calls trim_heaps() regularly: up to 8 MB stay at the end of each
// heap. By default glibc gives the end back as soon as 128 KB are free there, and each new message
// takes it again, page by page.
void keep_heap_ends();

// The same for a process that only runs a task, with many threads that are seldom busy: one heap
// per core, at least two. Two heaps, and the memory beside the heaps (slot_memory.h,
// lasting_memory.h), start with some MB for bursts (a recovery, a checkpoint) and keep them. Call
// it before any thread starts.
void prepare_heaps();

// Returns free heap memory to the system once the process's memory beside what its heaps have in
// use has grown by `kept_in_heaps` since the first call. Also returns slots that are unused since
// the last call. Takes milliseconds when it trims. Thread-safe.
void trim_heaps();
inline constexpr int64_t kept_in_heaps = int64_t{8} << 20;

// Returns all free heap memory; takes milliseconds. Call it after rare work that took much memory.
void give_back_free_heap();

}  // namespace leat
