// Sums and zeros of variants, element by element: gradients of values that pass through loops and
// branches.
#pragma once

#include "core/variant.h"

namespace leat {

// INVALID_ARGUMENT unless both are TensorLists, Optionals or ragged tensors of one structure.
Tensor sum_of_variants(const Tensor& a, const Tensor& b);
Tensor zeros_like_variant(const Tensor& tensor);

}  // namespace leat
