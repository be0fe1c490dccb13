// What every_op_test cannot ask of the ops of linear_algebra.cc.
#include <gtest/gtest.h>

#include <cmath>

#include "graph/gradient.h"
#include "graph/ops.h"
#include "tests/support/run_op.h"

namespace leat {
namespace {

// Through X Xᵀ + 2, which is symmetric whatever X is.
TEST(Cholesky, GradientAgreesWithCentralDifferences) {
  Graph graph;
  const Output x = placeholder(graph, "x", f64, {2, 3, 3});
  const Output two = constant(graph, Tensor::of<double>({3, 3}, {2, 0, 0, 0, 2, 0, 0, 0, 2}));
  const Output y = op("Cholesky", {batch_matmul(x, x, false, true) + two});
  const Output weighted = sum(square(y) + y);  // dy is not the same everywhere
  const Output dx = gradients({weighted}, {x})[0];
  Tensor value(f64, {2, 3, 3});
  for (int64_t i = 0; i < value.elements(); ++i)
    value.data<double>()[i] = std::sin(static_cast<double>(3 * i + 1));
  const Tensor gradient = evaluate({dx}, {{x.node, value}})[0];
  for (int64_t i = 0; i < value.elements(); ++i) {
    const auto at = [&](double step) {
      Tensor moved = value.clone();
      moved.data<double>()[i] += step;
      return evaluate({weighted}, {{x.node, moved}})[0].value<double>();
    };
    EXPECT_NEAR(gradient.data<double>()[i], (at(1e-5) - at(-1e-5)) / 2e-5, 1e-6) << "element " << i;
  }
}

}  // namespace
}  // namespace leat
