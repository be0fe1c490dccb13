// Ids that nobody else has: of requests, sessions, steps, registered graphs, and
// incarnations of processes.
#pragma once

#include <cstdint>

namespace leat {

uint64_t random_id();  // 64 random bits, never 0. Thread-safe.

}  // namespace leat
