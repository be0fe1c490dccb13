// Ops that only move elements, for variants.
#pragma once

#include <vector>

#include "core/kernel.h"

namespace leat {

// `moving`, which is a cpu_moving_kernel on an attribute, and the same for variants: it moves their
// numbers. For ops all of whose outputs are such elements.
std::vector<Kernel> and_for_variants(Kernel moving);

}  // namespace leat
