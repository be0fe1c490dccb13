// Matrices of derivatives: of vectors, and of gradients.
#pragma once

#include <vector>

#include "graph/graph.h"

namespace leat {

// dy/dx for each element of y: J[i…, j…] = ∂y[i…] / ∂x[j…], of y's shape, then x's. 0 where y does
// not depend on x. A loop runs the backward part once for each element of y. Where y is computed
// with a while loop or a condition, the graph gets a backward part for each element instead, and
// y's shape must be known. Both are floating-point numbers; ranks must be known. gradients() goes
// through.
//   Output j = jacobian(matmul(x, w), w);
Output jacobian(Output y, Output x, Location at = here());

// The second derivatives of y (of the sum of its elements) for each x: H[i…, j…] = ∂²y / ∂x[i…]
// ∂x[j…], of x's shape twice, as tf.hessians. A product with a vector v needs no matrix:
// gradients(sum(gradients(loss, w)[0] * v), w)[0].
//   Output h = hessians(loss, w)[0];
std::vector<Output> hessians(Output y, const std::vector<Output>& xs, Location at = here());
inline std::vector<Output> hessians(Output y, Output x, Location at = here()) {
  return hessians(y, std::vector<Output>{x}, at);
}

}  // namespace leat
