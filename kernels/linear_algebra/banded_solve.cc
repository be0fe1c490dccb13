// BandedTriangularSolve: solves systems with a triangular matrix that is 0 except on some
// diagonals. These are the rows of its input, [..., bands, n], in the layout of MatrixDiagPartV3
// with align LEFT_RIGHT. Computes in double precision.
#include <cmath>

#include "core/execution/step_end.h"
#include "graph/gradient.h"
#include "graph/ops.h"
#include "graph/shape_inference.h"
#include "kernels/broadcast_gradient.h"
#include "kernels/cpu.h"
#include "kernels/examples.h"
#include "kernels/linear_algebra/matrix_batch.h"
#include "kernels/linear_algebra/wide.h"

namespace leat {
namespace {

// One matrix by its diagonals. `lower`: the first is the main one, the others lie below it; else
// the last is the main one, the others lie above it.
template <class T>
struct Band {
  const T* diagonals;
  int64_t bands, n;
  bool lower, adjoint;

  // An element of the matrix, or of its adjoint.
  WideType<T> operator()(int64_t row, int64_t column) const {
    return adjoint ? conjugate(element(column, row)) : element(row, column);
  }

  // As in TensorFlow, NaN passes unless it is the first pivot.
  void check_invertible() const {
    for (int64_t i = 0; i < n; ++i) {
      const auto pivot = std::abs(element(i, i));
      check(i == 0 ? pivot > 0 : pivot != 0, "Input matrix is not invertible.");
    }
  }

  // Replaces the right-hand side in x, [n, columns], with the solution; row by row, from the end
  // that has a single unknown.
  void solve(Wide<T>& x, int64_t columns) const {
    const bool is_upper = lower == adjoint;
    for (int64_t step = 0; step < n; ++step) {
      const int64_t i = is_upper ? n - 1 - step : step;
      StepEnd::pace(4 * bands * columns);
      for (int64_t d = std::min(step, bands - 1); d > 0; --d) {
        const int64_t j = is_upper ? i + d : i - d;
        for (int64_t c = 0; c < columns; ++c)
          x[i * columns + c] -= (*this)(i, j) * x[j * columns + c];
      }
      for (int64_t c = 0; c < columns; ++c) x[i * columns + c] /= (*this)(i, i);
    }
  }

 private:
  WideType<T> element(int64_t row, int64_t column) const {
    const int64_t band = lower ? row - column : bands - 1 - (column - row);
    return WideType<T>(diagonals[band * n + row]);
  }
};

template <class T>
BoundKernel prepare(TypeTag<T>, const KernelRequest& r) {
  const Shape &matrix = r.inputs[0].shape, &rhs = r.inputs[1].shape, &out = r.outputs[0].shape;
  for (const TensorSpec& input : r.inputs)
    check(input.shape.elements() > 0, "matrix and rhs must not be empty, got shapes ", matrix,
          " and ", rhs);
  const int64_t bands = matrix[matrix.rank() - 2], n = matrix[matrix.rank() - 1],
                columns = rhs[rhs.rank() - 1];
  const Tensor of_matrix = matrices_of(batch_of(matrix), batch_of(out)),
               of_rhs = matrices_of(batch_of(rhs), batch_of(out));
  BoundKernel kernel = BoundKernel::of(
      [=, lower = r.attr<bool>("lower"), adjoint = r.attr<bool>("adjoint")](const Arguments& a) {
        Band<T> band{a.input<T>(0), bands, n, lower, adjoint};
        band.check_invertible();  // the first of the batch; others give inf, as in TensorFlow
        for (int64_t b = 0; b < of_matrix.elements(); ++b) {
          band.diagonals = a.input<T>(0) + of_matrix.data<int64_t>()[b] * bands * n;
          const T* from = a.input<T>(1) + of_rhs.data<int64_t>()[b] * n * columns;
          Wide<T> x = widened(from, n * columns);
          band.solve(x, columns);
          narrow(x, a.output<T>() + b * n * columns);
        }
      });
  kernel.cost_ns = 2.0 * static_cast<double>(out.elements() * bands);
  return kernel;
}

void infer(ShapeContext& c) {
  const Shape matrix = c.with_rank_at_least(0, 2), rhs = c.with_rank_at_least(1, 2);
  if (!matrix.has_rank() || !rhs.has_rank()) return c.set_output(0, Shape::unknown());
  const int64_t bands = matrix[matrix.rank() - 2], n = matrix[matrix.rank() - 1],
                rows = rhs[rhs.rank() - 2];
  check(bands != 0, "Number of bands must be positive, but is 0");
  check(n == any || rows == any || n == rows,
        "matrix and rhs must have the same number of rows, got ", n, " and ", rows, " of shapes ",
        matrix, " and ", rhs);
  Shape out = broadcast(batch_of(matrix), batch_of(rhs));
  out.push_back(n == any ? rows : n);
  out.push_back(rhs[rhs.rank() - 1]);
  c.set_output(0, out);
}

// Of x = solve(a, b): db solves with the other adjoint, da is the diagonals of -db xᵀ or of its
// transpose.
void gradient(Gradient& g) {
  const bool lower = g.attr<bool>("lower"), adjoint = g.attr<bool>("adjoint");
  const Output matrix = g.x(0), x = g.y();
  check(matrix.shape().has_rank(), "the gradient of BandedTriangularSolve needs a known rank");
  const Output db =
      op("BandedTriangularSolve", {matrix, g.dy()}, {{"lower", lower}, {"adjoint", !adjoint}});
  const Output all =
      -(adjoint ? matmul(x, db, {.adjoint_b = true}) : matmul(db, x, {.adjoint_b = true}));
  const auto number = [&](int32_t value) { return constant(g.graph(), Tensor::scalar(value)); };
  const Output others = take(shape_of(matrix), number(matrix.shape().rank() - 2)) - 1;
  const Output diagonals = lower ? stack({-others, number(0)}) : stack({number(0), others});
  const Output zero = cast(number(0), matrix.dtype());
  const Output da = op("MatrixDiagPartV3", {all, diagonals, zero}, {{"align", "LEFT_RIGHT"}});
  g.dx(0) = sum_to_shape_of(matrix, da, da);
  g.dx(1) = sum_to_shape_of(g.x(1), db, db);
}

const Op solve_op{{
    .name = "BandedTriangularSolve",
    .doc =
        "output = x with A x = rhs (or Aᴴ x = rhs with adjoint). A[i, i - b] = matrix[b, i] if it "
        "is lower triangular, A[i, i + b] = matrix[bands - 1 - b, i] if it is upper, 0 elsewhere.",
    .inputs = {"matrix: T", "rhs: T"},
    .outputs = {"output: T"},
    .attrs = {"lower: bool = true", "adjoint: bool = false",
              "T: {double, float, half, complex64, complex128}"},
    .shape = infer,
    .gradient = gradient,
    .kernels = {cpu_kernel(
        "T", Types<float, double, complex64, complex128>{},
        []<class T>(TypeTag<T> t, const KernelRequest& r) { return prepare(t, r); })},
    .examples = {{.inputs = {floats({2, 3}, {2, 4, 1, 0, 1, 3}), floats({3, 1}, {2, 9, 8})},
                  .outputs = {floats({3, 1}, {1, 2, 2})}},
                 {.inputs = {floats({2, 3}, {1, 3, 0, 2, 4, 1}), floats({3, 1}, {4, 14, 2})},
                  .attrs = {{"lower", false}},
                  .outputs = {floats({3, 1}, {1, 2, 2})}}},
    .has_complex_gradient = true,
}};

}  // namespace
}  // namespace leat
