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
// As numpy.dot: of vectors their inner product, of matrices matmul(a, b), with a scalar a * b. Of
// more axes: the sum of products over the last axis of a and the last but one of b, or its only
// one.
Output dot(Output a, Output b, Location at = here());
// Of vectors [n] and [m], which other shapes are flattened to: a[i] b[j], [n, m].
Output outer(Output a, Output b, Location at = here());
// The sum of products over the last `count` axes of a and the first ones of b. Ranks must be known.
// Result: the other axes of a, then those of b.
Output tensordot(Output a, Output b, int count = 2, Location at = here());
// The same over the axes of a and as many of b that are named: tensordot(a, b, {{0, 1}, {1, 0}}).
struct ContractedAxes {
  Axes a, b;
};
Output tensordot(Output a, Output b, const ContractedAxes& axes, Location at = here());
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
// Of matrices [..., n, m]: the sum of the main diagonal of each.
Output trace(Output x, Location at = here());
Output cholesky(Output x, Location at = here());
// y with a y = b: [..., n, n] and [..., n, m].
Output solve(Output a, Output b, Location at = here());
// The same with a lower (or upper) triangle: what is on the other side of it is not read.
struct TriangularOptions {
  Flag lower = true;
};
Output solve_triangular(Output a, Output b, TriangularOptions options = {}, Location at = here());
// The y with the least |a y - b|², and of these the shortest: [..., n, m] and [..., n, k] give
// [..., m, k]. f32 or f64.
Output lstsq(Output a, Output b, Location at = here());
// x = u · diag(s) · vh, of matrices [..., n, m] with k = min(n, m): u [..., n, k] and vh [..., k,
// m] have orthonormal columns and rows, s [..., k] is in falling order.
//   const auto [u, s, vh] = svd(x);
struct Svd {
  Output u, s, vh;
};
Svd svd(Output x, Location at = here());
// The eigenvalues of self-adjoint matrices [..., n, n] in rising order, and their eigenvectors as
// columns. Only the lower triangle is read.
//   const auto [values, vectors] = eigh(matmul(x, x, {.transpose_a = true}));
struct Eigh {
  Output values, vectors;
};
Eigh eigh(Output x, Location at = here());
// x = q · r, of matrices [..., n, m] with k = min(n, m): q [..., n, k] has orthonormal columns, r
// [..., k, m] is 0 below its diagonal.
struct Qr {
  Output q, r;
};
Qr qr(Output x, Location at = here());
// Of vectors of three along the last axis: a × b.
Output cross(Output a, Output b, Location at = here());
// Sum of squares / 2, a scalar.
Output l2_loss(Output x, Location at = here());

}  // namespace leat
