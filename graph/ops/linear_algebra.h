// Products and matrices.
#pragma once

#include "graph/ops/operand.h"

namespace leat {

struct MatmulOptions {
  bool transpose_a = false, transpose_b = false;
  bool adjoint_a = false, adjoint_b = false;  // transposed and conjugated
};
// The product of matrices [..., n, k] and [..., k, m]; dimensions in front are broadcast. A vector
// is a row on the left and a column on the right, and the result has no axis for it, as in NumPy.
Output matmul(Output a, Output b, MatmulOptions options = {}, Location at = here());
// Sums of products over labelled axes, as NumPy writes them: einsum("bij,bjk->bik", a, b).
Output einsum(std::string_view equation, const std::vector<Output>& operands, Location at = here());
inline Output einsum(std::string_view equation, Output x, Location at = here()) {
  return einsum(equation, std::vector<Output>{x}, at);
}
inline Output einsum(std::string_view equation, Output a, Output b, Location at = here()) {
  return einsum(equation, std::vector<Output>{a, b}, at);
}
// Of square matrices [..., n, n].
Output inverse(Output x, Location at = here());
Output determinant(Output x, Location at = here());
Output cholesky(Output x, Location at = here());
// y with a y = b: [..., n, n] and [..., n, m].
Output solve(Output a, Output b, Location at = here());
// Sum of squares / 2, a scalar.
Output l2_loss(Output x, Location at = here());

}  // namespace leat
