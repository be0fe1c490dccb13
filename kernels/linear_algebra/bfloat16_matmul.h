// bfloat16 products in the processor's own matrix instructions (AMX, AVX512-BF16), through oneDNN.
#pragma once

#include <optional>

#include "kernels/linear_algebra/matmul.h"

namespace leat {

// None if the processor has no such instructions, or oneDNN has no kernel for them.
std::optional<BoundKernel> bind_bfloat16_matmul(const MatMul& extents);

// The same for a constant b, which is laid out anew as oneDNN reads it fastest. `node_state`
// (core/kernel.h) keeps that copy for all tapes of the node.
std::optional<BoundKernel> bind_bfloat16_matmul(const MatMul& extents, const Tensor& b,
                                                std::shared_ptr<void>& node_state);

}  // namespace leat
