// bfloat16 products in the processor's own matrix instructions (AMX, AVX512-BF16), through oneDNN.
#pragma once

#include <optional>

#include "core/kernel.h"

namespace leat {

// product[m, n] = op(a)[m, k] op(b)[k, n]. None if the processor has no such instructions, or
// oneDNN has no kernel for them.
std::optional<BoundKernel> bind_bfloat16_matmul(int64_t m, int64_t n, int64_t k, bool transpose_a,
                                                bool transpose_b);

}  // namespace leat
