// For kernels that run others within a chunk of their own, on the thread that has it.
#pragma once

#include "core/kernel.h"

namespace leat {

class OneThread : public Stream {};

}  // namespace leat
