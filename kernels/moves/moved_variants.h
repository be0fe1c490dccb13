// Variant kernels for ops that only move elements.
#pragma once

#include <vector>

#include "core/kernel.h"

namespace leat {

// `moving`, which is a cpu_moving_kernel on an attribute, and the same for variants: it moves their
// indices. For ops whose outputs all consist of such elements.
std::vector<Kernel> and_for_variants(Kernel moving);

}  // namespace leat
