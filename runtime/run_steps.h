// What the sessions' run_steps() have in common.
#pragma once

#include <cstdint>

namespace leat {

// In a catch block: throws what step `step` of run_steps() threw, with its number: "step 7: …". An
// error stays what it is but for the message; other exceptions are not changed.
[[noreturn]] void rethrow_of_step(int64_t step);

}  // namespace leat
