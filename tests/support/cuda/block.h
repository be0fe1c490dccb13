// Runs a launch: block after block, a block's threads as fibers of the calling thread.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "tests/support/cuda/fiber.h"
#include "tests/support/cuda/include/cuda_runtime.h"

namespace cuda_on_host {

// The order in which blocks run, and the threads of a block start. 0: as they are numbered.
void set_order(uint64_t seed);

// Empty, or what is wrong with the kernel: a barrier that some threads never reach, a warp
// operation that names a lane which is gone. The launch ends there.
std::string run(const Launch& launch);

// The kernel's name.
std::string describe(const Launch& launch);

}  // namespace cuda_on_host
