// Attention with its matrix of scores in the workspace: where the library has none.
#pragma once

#include "core/kernel.h"

namespace leat {

struct AttentionScores;

// Kernels of _Attention and of _AttentionGrad. They round as the ops that these stand for: scores,
// weights and their gradients to the dtype, what lies between as f32.
BoundKernel bind_composed_attention(const KernelRequest& request, const AttentionScores& scores);
BoundKernel bind_composed_attention_gradient(const KernelRequest& request,
                                             const AttentionScores& scores);

}  // namespace leat
