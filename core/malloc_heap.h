// malloc's heaps, where gRPC's memory comes from and all that is small: what a task tells glibc of
// them. glibc has up to 8 per core, and what one thread frees those of other heaps cannot use.
// Nothing happens where there is another malloc.
#pragma once

#include <cstdint>

namespace leat {

// For a process with a task, which calls trim_heaps() regularly: up to 8 MB stay at the end of each
// heap. Else glibc gives them back as soon as 128 KB are free there, and each message that comes
// takes them again, page by page.
void keep_heap_ends();

// That, for a process that is nothing but a task, with many threads that are seldom busy: a heap
// per core, two at least. Two of them, and what is beside the heaps (slot_memory.h,
// lasting_memory.h), have some MB from the beginning, for bursts (a recovery, a checkpoint), and
// keep them. Before threads are started.
void prepare_heaps();

// Gives back to the system what is free in the heaps, once the process has grown by `kept_in_heaps`
// beside what is in use there since the first call, and slots that were not used since the last
// one. Takes milliseconds then. Thread-safe.
void trim_heaps();
inline constexpr int64_t kept_in_heaps = int64_t{8} << 20;

// All that is free in the heaps, in milliseconds: after what took much and seldom happens.
void give_back_free_heap();

}  // namespace leat
