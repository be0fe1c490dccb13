// Products of two matrices, for MatMul and BatchMatMulV2.
#pragma once

#include "core/kernel.h"
#include "kernels/types.h"

namespace leat {

// product[m, n] = op(a)[m, k] op(b)[k, n], all row-major; op transposes if asked to.
struct MatMul {
  int64_t m, n, k;
  bool transpose_a, transpose_b;
  bool conjugates = false;  // conjugates what it transposes (complex numbers)
  bool adds = false;        // adds to what the output holds
};

using MatMulTypes =
    Types<float, double, half, bfloat16, int16_t, int32_t, int64_t, complex64, complex128>;

// A kernel with inputs a, b and one output.
BoundKernel bind_matmul(DType dtype, const MatMul& extents);

// Tens of microseconds of work: a second thread does not pay for less.
inline constexpr int64_t matmul_flops_per_chunk = 8'000'000;

}  // namespace leat
