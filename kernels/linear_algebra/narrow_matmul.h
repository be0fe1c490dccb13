// f32 products with few rows or few columns: a classifier, a vector times a matrix, inference with
// a small batch. Reading the large operand is most of the work, so it is read once, as it lies in
// memory; oneDNN's products of this form lay it out anew first.
#pragma once

#include <optional>

#include "kernels/linear_algebra/matmul.h"

namespace leat {

// None where oneDNN is as fast (measured: see narrow_matmul.cc).
std::optional<BoundKernel> bind_narrow_matmul(const MatMul& extents);

}  // namespace leat
