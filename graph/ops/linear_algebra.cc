#include "graph/ops/linear_algebra.h"

#include "graph/ops/arrays.h"

namespace leat {

Output matmul(Output a, Output b, MatmulOptions options, Location at) {
  check(bool{a} && bool{b}, "matmul (", at,
        ") is given an empty Output: it was never set to a result of the graph");
  check(!(options.transpose_a && options.adjoint_a) && !(options.transpose_b && options.adjoint_b),
        "matmul (", at, "): an operand cannot have both transpose and adjoint");
  if (a.shape().rank() == 1 || b.shape().rank() == 1) {
    const bool is_row = a.shape().rank() == 1, is_column = b.shape().rank() == 1;
    check((!is_row || !(options.transpose_a || options.adjoint_a)) &&
              (!is_column || !(options.transpose_b || options.adjoint_b)),
          "matmul (", at, "): a vector has no transpose, got ", a.shape(), " and ", b.shape());
    const Output y = matmul(is_row ? expand_dims(a, 0, at) : a,
                            is_column ? expand_dims(b, 1, at) : b, options, at);
    std::vector<int> axes;
    if (is_row) axes.push_back(-2);
    if (is_column) axes.push_back(-1);
    return squeeze(y, axes, at);
  }
  const bool are_matrices = a.shape().rank() == 2 && b.shape().rank() == 2;
  const bool are_complex = is_complex(a.dtype());
  if (are_matrices && !(are_complex && (options.adjoint_a || options.adjoint_b))) {
    return op("MatMul", {a, b},
              {{"transpose_a", options.transpose_a || options.adjoint_a},
               {"transpose_b", options.transpose_b || options.adjoint_b}},
              at);
  }
  // BatchMatMul knows the adjoint only, which the conjugate makes the transpose.
  if (are_complex && options.transpose_a) a = op("Conj", {a}, {}, at);
  if (are_complex && options.transpose_b) b = op("Conj", {b}, {}, at);
  return op("BatchMatMulV2", {a, b},
            {{"adj_x", options.transpose_a || options.adjoint_a},
             {"adj_y", options.transpose_b || options.adjoint_b}},
            at);
}

Output einsum(std::string_view equation, const std::vector<Output>& operands, Location at) {
  return op("Einsum", operands, {{"equation", equation}}, at);
}
Output inverse(Output x, Location at) { return op("MatrixInverse", {x}, {}, at); }
Output determinant(Output x, Location at) { return op("MatrixDeterminant", {x}, {}, at); }
Output cholesky(Output x, Location at) { return op("Cholesky", {x}, {}, at); }
Output solve(Output a, Output b, Location at) { return op("MatrixSolve", {a, b}, {}, at); }
Output l2_loss(Output x, Location at) { return op("L2Loss", {x}, {}, at); }

}  // namespace leat
