#include "graph/ops/linear_algebra.h"

#include <algorithm>
#include <numeric>

#include "graph/ops/arrays.h"
#include "graph/ops/graph_of.h"
#include "graph/ops/reduce.h"

namespace leat {
namespace {

void check_given(std::string_view what, Output a, Output b, Location at) {
  check(bool{a} && bool{b}, what, " (", at,
        ") is given an empty Output: it was never set to a result of the graph");
}

// Axes of x, each once, from the front.
std::vector<int> contracted(std::string_view operand, Output x, const Axes& axes, Location at) {
  const std::vector<int>* list = axes.list();
  const int rank = x.shape().rank();
  check(list != nullptr && rank >= 0, "tensordot (", at, "): the axes of ", operand,
        " must be numbers, and the rank of '", x.name(), "' ", x.shape(), " known");
  std::vector<int> out;
  for (const int axis : *list) {
    const int from_front = axis < 0 ? axis + rank : axis;
    check(from_front >= 0 && from_front < rank, "tensordot (", at, "): ", operand, " '", x.name(),
          "' ", x.shape(), " has no axis ", axis);
    check(std::find(out.begin(), out.end(), from_front) == out.end(), "tensordot (", at, "): axis ",
          axis, " of ", operand, " is named twice");
    out.push_back(from_front);
  }
  return out;
}

}  // namespace

Output matmul(Output a, Output b, MatmulOptions options, Location at) {
  check_given("matmul", a, b, at);
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

Output dot(Output a, Output b, Location at) {
  check_given("dot", a, b, at);
  const int rank_a = a.shape().rank(), rank_b = b.shape().rank();
  check(rank_a >= 0 && rank_b >= 0, "dot (", at,
        "): the ranks of its operands must be known, got '", a.name(), "' ", a.shape(), " and '",
        b.name(), "' ", b.shape());
  if (rank_a == 0 || rank_b == 0) return op("Mul", {a, b}, {}, at);
  if (rank_a <= 2 && rank_b <= 2) return matmul(a, b, {}, at);
  return tensordot(a, b, {-1, rank_b == 1 ? 0 : -2}, at);
}
Output outer(Output a, Output b, Location at) {
  check_given("outer", a, b, at);
  return op("Mul", {reshape(a, {-1, 1}, at), reshape(b, {1, -1}, at)}, {}, at);
}

Output tensordot(Output a, Output b, int count, Location at) {
  check_given("tensordot", a, b, at);
  check(count >= 0 && count <= a.shape().rank() && count <= b.shape().rank(), "tensordot (", at,
        ") over ", count, " axes: '", a.name(), "' ", a.shape(), " and '", b.name(), "' ",
        b.shape(), " must have as many");
  std::vector<int> last(count), first(count);
  std::iota(last.begin(), last.end(), a.shape().rank() - count);
  std::iota(first.begin(), first.end(), 0);
  return tensordot(a, b, ContractedAxes{last, first}, at);
}
Output tensordot(Output a, Output b, const ContractedAxes& axes, Location at) {
  check_given("tensordot", a, b, at);
  const std::vector<int> of_a = contracted("a", a, axes.a, at),
                         of_b = contracted("b", b, axes.b, at);
  check(of_a.size() == of_b.size(), "tensordot (", at, "): ", of_a.size(), " axes of a, but ",
        of_b.size(), " of b");
  const int rank = a.shape().rank() + b.shape().rank();
  check(rank <= 52, "tensordot (", at, "): more than 52 axes in all");
  const auto label = [](int axis) {
    return static_cast<char>(axis < 26 ? 'a' + axis : 'A' + axis - 26);
  };
  std::string left, right, result;
  for (int axis = 0; axis < a.shape().rank(); ++axis) {
    left += label(axis);
    if (std::find(of_a.begin(), of_a.end(), axis) == of_a.end()) result += label(axis);
  }
  for (int axis = 0; axis < b.shape().rank(); ++axis) {
    const auto found = std::find(of_b.begin(), of_b.end(), axis);
    const char own = label(a.shape().rank() + axis);
    right += found == of_b.end() ? own : label(of_a[found - of_b.begin()]);
    if (found == of_b.end()) result += own;
  }
  return einsum(left + "," + right + "->" + result, a, b, at);
}

Output einsum(std::string_view equation, const std::vector<Output>& operands, Location at) {
  return op("Einsum", operands, {{"equation", equation}}, at);
}
Output inverse(Output x, Location at) { return op("MatrixInverse", {x}, {}, at); }
Output determinant(Output x, Location at) { return op("MatrixDeterminant", {x}, {}, at); }
Output trace(Output x, Location at) {
  Graph& graph = graph_of(x, at);
  const Output main = constant(graph, Tensor::scalar<int32_t>(0), "k", at),
               zero = Operand(0, at).as(graph, x.dtype());
  return sum(op("MatrixDiagPartV2", {x, main, zero}, {}, at), -1, {}, at);
}
Output cholesky(Output x, Location at) { return op("Cholesky", {x}, {}, at); }
Output solve(Output a, Output b, Location at) { return op("MatrixSolve", {a, b}, {}, at); }
Output solve_triangular(Output a, Output b, TriangularOptions options, Location at) {
  return op("MatrixTriangularSolve", {a, b}, {{"lower", bool{options.lower}}}, at);
}
Output lstsq(Output a, Output b, Location at) {
  const Output none = constant(graph_of(a, at), Tensor::scalar(0.0), "l2_regularizer", at);
  return op("MatrixSolveLs", {a, b, none}, {{"fast", false}}, at);
}
Svd svd(Output x, Location at) {
  graph_of(x, at);
  const int rank = x.shape().rank();
  check(rank >= 2, "svd (", at, "): it needs matrices, [..., n, m], of a known rank, got '",
        x.name(), "' ", x.shape());
  const std::vector<Output> out =
      op_outputs("Svd", {x}, {{"compute_uv", true}, {"full_matrices", false}}, at);
  std::vector<int> axes(rank);
  std::iota(axes.begin(), axes.end(), 0);
  std::swap(axes[rank - 2], axes[rank - 1]);
  const Output v = is_complex(x.dtype()) ? op("Conj", {out[2]}, {}, at) : out[2];
  return {out[1], out[0], transpose(v, axes, at)};
}
Eigh eigh(Output x, Location at) {
  const std::vector<Output> out = op_outputs("SelfAdjointEigV2", {x}, {{"compute_v", true}}, at);
  return {out[0], out[1]};
}
Qr qr(Output x, Location at) {
  const std::vector<Output> out = op_outputs("Qr", {x}, {{"full_matrices", false}}, at);
  return {out[0], out[1]};
}
Output cross(Output a, Output b, Location at) { return op("Cross", {a, b}, {}, at); }
Output l2_loss(Output x, Location at) { return op("L2Loss", {x}, {}, at); }

}  // namespace leat
