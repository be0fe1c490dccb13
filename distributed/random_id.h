// Unique ids: of requests, sessions, steps, registered graphs, and process incarnations.
#pragma once

#include <cstdint>

namespace leat {

uint64_t random_id();  // 64 random bits, never 0. Thread-safe.

}  // namespace leat
