// Work that waits for the disk runs on its own threads: compute threads never block.
#pragma once

#include <functional>

namespace leat {

// Runs `work` soon, on one of at most four threads, which end with the process. `work` must not
// throw. RESOURCE_EXHAUSTED if the system can start no thread at all.
void run_blocking(std::function<void()> work);

// The same for work that itself waits for run_blocking(), such as an iterator whose functions read
// files, or that waits for such iterators. It gets a thread at once: a new one if all are busy, up
// to a thousand.
void run_waiting(std::function<void()> work);

}  // namespace leat
