// Solves systems with square matrices, [..., n, n]: Cholesky, MatrixTriangularSolve, MatrixSolve,
// MatrixInverse, determinants.
#include <algorithm>
#include <cmath>
#include <limits>

#include "core/execution/step_end.h"
#include "graph/gradient.h"
#include "graph/ops.h"
#include "graph/shape_inference.h"
#include "kernels/broadcast_gradient.h"
#include "kernels/cpu.h"
#include "kernels/examples.h"
#include "kernels/linear_algebra/decomposition.h"
#include "kernels/linear_algebra/matrix_batch.h"

namespace leat {
namespace {

using SolvedTypes = Types<float, double, complex64, complex128>;
const char* const types = "T: {double, float, half, complex64, complex128}";
const char* const determinant_types = "T: {half, float, double, complex64, complex128}";

// Input `i`, checked: the last two extents are equal.
Shape square(ShapeContext& c, int i) {
  Shape shape = c.with_rank_at_least(i, 2);
  if (!shape.has_rank()) return shape;
  const int64_t rows = shape[shape.rank() - 2], cols = shape[shape.rank() - 1];
  check(rows == any || cols == any || rows == cols, "Input matrix must be square, got shape ",
        shape);
  for (const int axis : {shape.rank() - 1, shape.rank() - 2})
    shape.set(axis, rows == any ? cols : rows);
  return shape;
}

// ---- The gradients' parts

Output product(Output a, Output b, bool adj_a = false, bool adj_b = false) {
  return matmul(a, b, {.adjoint_a = adj_a, .adjoint_b = adj_b});
}

Output band(Output x, int64_t lower, int64_t upper) {
  const auto number = [&](int64_t value) { return constant(x.graph(), Tensor::scalar(value)); };
  return op("MatrixBandPart", {x, number(lower), number(upper)});
}

Output to_matrices(Output x) {
  const Output last = constant(x.graph(), Tensor::scalar<int32_t>(-1));
  return op("ExpandDims", {op("ExpandDims", {x, last}), last});
}

Output inverse_of(Output x, bool adjoint) {
  return op("MatrixInverse", {x}, {{"adjoint", adjoint}});
}

// ---- Cholesky

template <class T>
BoundKernel prepare_cholesky(TypeTag<T>, const KernelRequest& r) {
  const Shape& shape = r.inputs[0].shape;
  if (shape.elements() == 0) return {};
  const int64_t n = shape[shape.rank() - 1], batches = shape.elements() / (n * n);
  return BoundKernel::of([=](const Arguments& a) {
    for (int64_t b = 0; b < batches; ++b) {
      StepEnd::ask();
      const T* const from = a.input<T>(0) + b * n * n;
      DenseMatrix<T> l(from, from + n * n);
      for (int64_t i = 0; i < n; ++i) l[i * (n + 1)] = std::real(l[i * (n + 1)]);
      const bool is_positive = dense<DenseType<T>>().cholesky(l.data(), n);
      for (int64_t i = 0; i < n; ++i) {
        const auto diagonal = l.begin() + i * (n + 1);
        if (!is_positive)
          std::fill_n(diagonal - i, i + 1, std::numeric_limits<RealOf<T>>::quiet_NaN());
        std::fill(diagonal + 1, l.begin() + (i + 1) * n, DenseType<T>(0));
      }
      narrow(l, a.output<T>() + b * n * n);
    }
  });
}

// Assumes a self-adjoint matrix: the gradient is self-adjoint, too.
void cholesky_gradient(Gradient& g) {
  const Output l = g.y();
  const Output diagonal = op("MatrixDiagPart", {l});
  const Output eye = op("MatrixDiag", {ones_like(diagonal)});
  const Output inverse = op("MatrixTriangularSolve", {l, eye});
  Output middle = product(l, g.dy(), true);
  middle = op("MatrixSetDiag", {middle, op("MatrixDiagPart", {middle}) * 0.5});
  middle = band(middle, -1, 0);
  const Output da = product(product(inverse, middle, true), inverse);
  g.dx() = (da + product(da, eye, true)) * 0.5;
}

const Op cholesky_op{{
    .name = "Cholesky",
    .doc =
        "output = the lower triangular matrix L with L Lᴴ = input, of which the lower triangle is "
        "read; NaN if it is not positive definite.",
    .inputs = {"input: T"},
    .outputs = {"output: T"},
    .attrs = {types},
    .shape = [](ShapeContext& c) { c.set_output(0, square(c, 0)); },
    .gradient = cholesky_gradient,
    .kernels = {cpu_kernel(
        "T", SolvedTypes{},
        []<class T>(TypeTag<T> t, const KernelRequest& r) { return prepare_cholesky(t, r); })},
    .examples = {{.inputs = {floats({2, 2}, {4, 2, 2, 10})},
                  .outputs = {floats({2, 2}, {2, 0, 1, 3})}}},
}};

// ---- MatrixTriangularSolve

template <class T>
BoundKernel prepare_triangular(TypeTag<T>, const KernelRequest& r) {
  const Shape &matrix = r.inputs[0].shape, &rhs = r.inputs[1].shape, &out = r.outputs[0].shape;
  if (out.elements() == 0) return {};
  const int64_t n = matrix[matrix.rank() - 1], columns = rhs[rhs.rank() - 1];
  const bool is_adjoint = r.attr<bool>("adjoint"), upper = r.attr<bool>("lower") == is_adjoint;
  const Tensor of_matrix = matrices_of(batch_of(matrix), batch_of(out)),
               of_rhs = matrices_of(batch_of(rhs), batch_of(out));
  return BoundKernel::of([=](const Arguments& a) {
    for (int64_t b = 0; b < of_matrix.elements(); ++b) {
      StepEnd::ask();
      const T* m = a.input<T>(0) + of_matrix.data<int64_t>()[b] * n * n;
      const T* from = a.input<T>(1) + of_rhs.data<int64_t>()[b] * n * columns;
      T* to = a.output<T>() + b * n * columns;
      DenseMatrix<T> triangle(m, m + n * n);
      if (is_adjoint) triangle = adjoint_of(triangle, n, n);
      // Of a zero on the diagonal: inf, as TensorFlow.
      DenseMatrix<T> x(from, from + n * columns);
      dense<DenseType<T>>().solve_triangular(triangle.data(), n, upper, x.data(), columns);
      narrow(x, to);
    }
  });
}

// The shape of x. `broadcasts`: the axes of the batch.
void infer_solve(ShapeContext& c, bool broadcasts) {
  const Shape matrix = square(c, 0), rhs = c.with_rank_at_least(1, 2);
  if (!matrix.has_rank() || !rhs.has_rank()) return c.set_output(0, Shape::unknown());
  const int64_t n = matrix[matrix.rank() - 1], rows = rhs[rhs.rank() - 2];
  check(n == any || rows == any || n == rows,
        "Input matrix and right-hand side must have the same "
        "number of rows, got shapes ",
        matrix, " and ", rhs);
  if (!broadcasts) {
    check(batch_of(matrix).is_compatible(batch_of(rhs)),
          "Batch dimensions must be equal, got shapes ", matrix, " and ", rhs);
  }
  Shape out = broadcasts ? broadcast(batch_of(matrix), batch_of(rhs))
                         : batch_of(matrix).merged(batch_of(rhs));
  out.push_back(n == any ? rows : n);
  out.push_back(rhs[rhs.rank() - 1]);
  c.set_output(0, out);
}

// Of x = solve(a, b): db solves with the other adjoint, da = -db xᵀ or its transpose.
void solve_gradient(Gradient& g, Output& da, Output& db) {
  const bool adjoint = g.attr<bool>("adjoint");
  AttrMap attrs = {{"adjoint", !adjoint}};
  if (g.node().op->name == "MatrixTriangularSolve") attrs["lower"] = g.attr<bool>("lower");
  db = op(g.node().op->name, {g.x(0), g.dy()}, attrs);
  da = -(adjoint ? product(g.y(), db, false, true) : product(db, g.y(), false, true));
}

const Op triangular_solve_op{{
    .name = "MatrixTriangularSolve",
    .doc = "output = x with matrix x = rhs (or matrixᴴ x = rhs with adjoint), of which only the "
           "lower (or upper) triangle is read.",
    .inputs = {"matrix: T", "rhs: T"},
    .outputs = {"output: T"},
    .attrs = {"lower: bool = true", "adjoint: bool = false",
              "T: {bfloat16, double, float, half, complex64, complex128}"},
    .shape = [](ShapeContext& c) { infer_solve(c, true); },
    .gradient =
        [](Gradient& g) {
          Output da, db;
          solve_gradient(g, da, db);
          const bool lower = g.attr<bool>("lower");
          da = lower ? band(da, -1, 0) : band(da, 0, -1);
          g.dx(0) = sum_to_shape_of(g.x(0), da, da);
          g.dx(1) = sum_to_shape_of(g.x(1), db, db);
        },
    .kernels = {cpu_kernel(
        "T", SolvedTypes{},
        []<class T>(TypeTag<T> t, const KernelRequest& r) { return prepare_triangular(t, r); })},
    .examples = {{.inputs = {floats({2, 2}, {2, 9, 1, 4}), floats({2, 1}, {2, 9})},
                  .outputs = {floats({2, 1}, {1, 2})}},
                 {.inputs = {floats({2, 2}, {2, 9, 1, 4}), floats({2, 1}, {4, 8})},
                  .attrs = {{"adjoint", true}},
                  .outputs = {floats({2, 1}, {1, 2})}}},
}};

// ---- MatrixSolve and MatrixInverse

// `columns` of the right-hand side; 0 means the unit matrix.
template <class T>
BoundKernel bind_solve(const KernelRequest& r, int64_t columns) {
  const Shape& shape = r.inputs[0].shape;
  if (r.outputs[0].shape.elements() == 0) return {};
  const int64_t n = shape[shape.rank() - 1], batches = shape.elements() / (n * n);
  return BoundKernel::of([=, adjoint = r.attr<bool>("adjoint")](const Arguments& a) {
    const int64_t width = columns == 0 ? n : columns;
    for (int64_t b = 0; b < batches; ++b) {
      StepEnd::ask();
      const T* const from = a.input<T>(0) + b * n * n;
      DenseMatrix<T> matrix(from, from + n * n);
      const Lu lu(adjoint ? adjoint_of(matrix, n, n) : std::move(matrix), n);
      lu.check_invertible();
      DenseMatrix<T> rhs(n * width);
      if (columns == 0) {
        for (int64_t i = 0; i < n; ++i) rhs[i * (n + 1)] = 1;
      } else {
        std::copy_n(a.input<T>(1) + b * n * width, n * width, rhs.begin());
      }
      narrow(lu.solve(rhs, width), a.output<T>() + b * n * width);
    }
  });
}

const Op solve_op{{
    .name = "MatrixSolve",
    .doc = "output = x with matrix x = rhs, or matrixᴴ x = rhs with adjoint.",
    .inputs = {"matrix: T", "rhs: T"},
    .outputs = {"output: T"},
    .attrs = {"adjoint: bool = false", types},
    .shape = [](ShapeContext& c) { infer_solve(c, false); },
    .gradient = [](Gradient& g) { solve_gradient(g, g.dx(0), g.dx(1)); },
    .kernels = {cpu_kernel("T", SolvedTypes{},
                           []<class T>(TypeTag<T>, const KernelRequest& r) {
                             const Shape& rhs = r.inputs[1].shape;
                             return bind_solve<T>(r, rhs[rhs.rank() - 1]);
                           })},
    .examples = {{.inputs = {floats({2, 2}, {0, 2, 1, 4}), floats({2, 1}, {4, 9})},
                  .outputs = {floats({2, 1}, {1, 2})}}},
}};

const Op inverse_op{{
    .name = "MatrixInverse",
    .doc = "output = input⁻¹, or its adjoint.",
    .inputs = {"input: T"},
    .outputs = {"output: T"},
    .attrs = {"adjoint: bool = false", types},
    .shape = [](ShapeContext& c) { c.set_output(0, square(c, 0)); },
    .gradient =
        [](Gradient& g) {
          const Output y = g.y();
          g.dx() = -(g.attr<bool>("adjoint") ? product(y, product(g.dy(), y, true))
                                             : product(y, product(g.dy(), y, false, true), true));
        },
    .kernels = {cpu_kernel(
        "T", SolvedTypes{},
        []<class T>(TypeTag<T>, const KernelRequest& r) { return bind_solve<T>(r, 0); })},
    .examples = {{.inputs = {floats({2, 2}, {0, 2, 1, 4})},
                  .outputs = {floats({2, 2}, {-2, 1, 0.5f, 0})}}},
}};

// ---- Determinants

// x / |x|; x itself for 0 and NaN.
template <class W>
W direction_of(const W& x) {
  if constexpr (is_complex_type<W>)
    return std::abs(x) > 0 ? x / std::abs(x) : x;
  else
    return x > 0 ? 1 : x < 0 ? -1 : x;
}

// `is_log`: the sign, and the logarithm of the rest.
template <class T>
BoundKernel bind_determinant(const KernelRequest& r, bool is_log) {
  const Shape& shape = r.inputs[0].shape;
  const int64_t n = shape[shape.rank() - 1], batches = r.outputs[0].shape.elements();
  return BoundKernel::of([=](const Arguments& a) {
    for (int64_t b = 0; b < batches; ++b) {
      StepEnd::ask();
      const T* const from = a.input<T>(0) + b * n * n;
      const Lu lu(DenseMatrix<T>(from, from + n * n), n);
      // In double precision: a product of floats overflows earlier.
      WideType<T> sign = lu.is_odd ? -1 : 1, determinant = sign;
      double log = 0;
      for (int64_t i = 0; i < n; ++i) {
        const WideType<T> pivot(lu.a[i * (n + 1)]);
        determinant *= pivot;
        sign *= direction_of(pivot);
        log += std::log(std::abs(pivot));
      }
      a.output<T>()[b] = T(is_log ? sign : determinant);
      if (is_log) a.output<T>(1)[b] = T(log);
    }
  });
}

void infer_determinant(ShapeContext& c) {
  const Shape shape = square(c, 0);
  for (int i = 0; i < c.num_outputs(); ++i)
    c.set_output(i, shape.has_rank() ? batch_of(shape) : Shape::unknown());
}

const Op determinant_op{{
    .name = "MatrixDeterminant",
    .doc = "output = det input.",
    .inputs = {"input: T"},
    .outputs = {"output: T"},
    .attrs = {determinant_types},
    .shape = infer_determinant,
    .gradient = [](Gradient& g) { g.dx() = to_matrices(g.dy() * g.y()) * inverse_of(g.x(), true); },
    .kernels = {cpu_kernel(
        "T", SolvedTypes{},
        []<class T>(TypeTag<T>, const KernelRequest& r) { return bind_determinant<T>(r, false); })},
    .examples = {{.inputs = {floats({2, 2}, {1, 2, 3, 4})}, .outputs = {Tensor::scalar(-2.0f)}}},
}};

const Op log_determinant_op{{
    .name = "LogMatrixDeterminant",
    .doc = "sign = the sign of det input, log_abs_determinant = ln |det input|.",
    .inputs = {"input: T"},
    .outputs = {"sign: T", "log_abs_determinant: T"},
    .attrs = {determinant_types},
    .shape = infer_determinant,
    .gradient =
        [](Gradient& g) {
          if (g.dy(1)) g.dx() = to_matrices(g.dy(1)) * inverse_of(g.x(), true);
        },
    .kernels = {cpu_kernel(
        "T", SolvedTypes{},
        []<class T>(TypeTag<T>, const KernelRequest& r) { return bind_determinant<T>(r, true); })},
    .examples = {{.inputs = {floats({2, 2}, {1, 2, 3, 4})},
                  .outputs = {Tensor::scalar(-1.0f), Tensor::scalar(0.69314718f)}}},
}};

}  // namespace
}  // namespace leat
