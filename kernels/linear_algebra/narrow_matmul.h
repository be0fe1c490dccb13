// f32 products with few columns, as in a classifier with two classes: reading `a` is all the work.
#pragma once

#include <optional>

#include "kernels/linear_algebra/matmul.h"

namespace leat {

// None where sgemm is as fast: from 4 columns on (from 5 if `a` is transposed), and for one column
// if `a` is transposed.
std::optional<BoundKernel> bind_narrow_matmul(const MatMul& extents);

}  // namespace leat
