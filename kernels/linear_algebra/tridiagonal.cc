// Tridiagonal matrices, given by their diagonals: TridiagonalSolve and TridiagonalMatMul.
#include <cmath>
#include <limits>

#include "core/execution/step_end.h"
#include "graph/gradient.h"
#include "graph/ops.h"
#include "graph/ops/raw.h"
#include "graph/shape_inference.h"
#include "kernels/cpu.h"
#include "kernels/examples.h"

namespace leat {
namespace {

using MatrixTypes = Types<double, float, complex64, complex128>;
const char* const types = "T: {double, float, complex64, complex128}";

int64_t last(const Shape& shape) { return shape[shape.rank() - 1]; }
int64_t last_but_one(const Shape& shape) { return shape[shape.rank() - 2]; }

Shape batch_of(const Shape& shape) {
  return shape.has_rank() ? Shape(shape.dims().first(shape.rank() - 2)) : shape;
}

Shape with_extents(Shape batch, int64_t rows, int64_t columns) {
  if (!batch.has_rank()) return batch;
  batch.push_back(rows);
  batch.push_back(columns);
  return batch;
}

// The axes before the last two, which all inputs have in common.
Shape common_batch(ShapeContext& c) {
  Shape batch = Shape::unknown();
  for (int i = 0; i < c.num_inputs(); ++i) {
    const Shape own = batch_of(c.with_rank_at_least(i, 2));
    check(batch.is_compatible(own),
          "All input tensors must have the same outer dimensions, but those of ", c.input_name(i),
          " are ", own, ", not ", batch);
    batch = batch.merged(own);
  }
  return batch;
}

// ---- TridiagonalSolve

// n equations with `columns` right-hand sides. The first of `below` and the last of `above` are not
// read.
template <class T>
struct Equations {
  int64_t n, columns;
  const T *above, *diagonal, *below, *rhs;
};

// The factor U: its diagonal, and the two diagonals above that.
template <class T>
struct Factor {
  std::vector<T> diagonal, first, second;
  explicit Factor(int64_t n) : diagonal(n), first(n), second(n) {}
};

// Gaussian elimination with exchanges of rows, as in LAPACK's dgtsv. False if the matrix is
// singular.
template <class T>
bool solve_with_pivoting(const Equations<T>& e, T* x) {
  const int64_t n = e.n, columns = e.columns;
  Factor<T> u(n);
  u.diagonal[0] = e.diagonal[0];
  if (n > 1) u.first[0] = e.above[0];
  std::copy_n(e.rhs, columns, x);
  for (int64_t i = 0; i + 1 < n; ++i) {
    T *row = x + i * columns, *next = row + columns;
    StepEnd::pace(4 + columns);
    const T* rhs = e.rhs + (i + 1) * columns;
    const T below = e.below[i + 1], above = i + 2 < n ? e.above[i + 1] : T(0);
    if (std::abs(u.diagonal[i]) >= std::abs(below)) {
      if (u.diagonal[i] == T(0)) return false;
      const T factor = below / u.diagonal[i];
      u.diagonal[i + 1] = e.diagonal[i + 1] - factor * u.first[i];
      u.first[i + 1] = above;
      for (int64_t j = 0; j < columns; ++j) next[j] = rhs[j] - factor * row[j];
    } else {
      const T factor = u.diagonal[i] / below;
      u.diagonal[i] = below;
      u.diagonal[i + 1] = u.first[i] - factor * e.diagonal[i + 1];
      u.first[i] = e.diagonal[i + 1];
      u.second[i] = above;
      u.first[i + 1] = -factor * above;
      for (int64_t j = 0; j < columns; ++j) {
        next[j] = row[j] - factor * rhs[j];
        row[j] = rhs[j];
      }
    }
  }
  if (u.diagonal[n - 1] == T(0)) return false;
  for (int64_t i = n - 1; i >= 0; --i) {
    T* row = x + i * columns;
    for (int64_t j = 0; j < columns; ++j) {
      if (i + 1 < n) row[j] -= u.first[i] * row[columns + j];
      if (i + 2 < n) row[j] -= u.second[i] * row[2 * columns + j];
      row[j] /= u.diagonal[i];
    }
  }
  return true;
}

// Thomas's algorithm. False if the matrix is singular or needs exchanges.
template <class T>
bool solve_without_pivoting(const Equations<T>& e, T* x) {
  const int64_t n = e.n, columns = e.columns;
  std::vector<T> above(n);
  for (int64_t i = 0; i < n; ++i) {
    const T below = i > 0 ? e.below[i] : T(0);
    StepEnd::pace(4 + columns);
    const T divisor = i > 0 ? e.diagonal[i] - below * above[i - 1] : e.diagonal[0];
    if (divisor == T(0)) return false;
    if (i + 1 < n) above[i] = e.above[i] / divisor;
    T* row = x + i * columns;
    const T* rhs = e.rhs + i * columns;
    for (int64_t j = 0; j < columns; ++j)
      row[j] = i > 0 ? (rhs[j] - below * row[j - columns]) / divisor : rhs[j] / divisor;
  }
  for (int64_t i = n - 2; i >= 0; --i) {
    T* row = x + i * columns;
    for (int64_t j = 0; j < columns; ++j) row[j] -= above[i] * row[columns + j];
  }
  return true;
}

void infer_solve(ShapeContext& c) {
  const Shape batch = common_batch(c);
  const Shape &diagonals = c.input(0), &rhs = c.input(1);
  int64_t n = any;
  if (diagonals.has_rank()) {
    check(last_but_one(diagonals) == any || last_but_one(diagonals) == 3,
          "Expected diagonals to be provided as a matrix with 3 rows, got ",
          last_but_one(diagonals), " rows");
    n = last(diagonals);
  }
  if (rhs.has_rank()) {
    const int64_t rows = last_but_one(rhs);
    check(n == any || rows == any || n == rows,
          "Expected the same number of left-hand sides and right-hand sides, got ", n, " and ",
          rows);
    if (n == any) n = rows;
  }
  c.set_output(0, rhs.has_rank() ? with_extents(batch, n, last(rhs)) : rhs);
}

template <class T>
BoundKernel prepare_solve(TypeTag<T>, const KernelRequest& r) {
  const bool pivoting = r.attr<bool>("partial_pivoting");
  const bool perturbs = r.attr<bool>("perturb_singular");
  check(pivoting || !perturbs, "Setting perturb_singular requires also setting partial_pivoting");
  if (perturbs) {
    fail(Code::unimplemented,
         "perturb_singular is not supported: add a small multiple of the identity to the matrix");
  }
  const Shape& rhs = r.inputs[1].shape;
  const int64_t n = last_but_one(rhs), columns = last(rhs);
  if (rhs.elements() == 0) return {};
  return BoundKernel::of([=, count = rhs.elements() / (n * columns)](const Arguments& a) {
    for (int64_t b = 0; b < count; ++b) {
      const T* diagonals = a.input<T>(0) + b * 3 * n;
      const Equations<T> equations{
          n, columns, diagonals, diagonals + n, diagonals + 2 * n, a.input<T>(1) + b * n * columns};
      T* x = a.output<T>() + b * n * columns;
      const bool solved =
          pivoting ? solve_with_pivoting(equations, x) : solve_without_pivoting(equations, x);
      if (!solved) std::fill_n(x, n * columns, T(std::nan("")));
    }
  });
}

// ---- The gradients' parts

Output numbers(const Output& x, std::initializer_list<int32_t> values) {
  return constant(x.graph(), ints(values));
}
Output number(const Output& x, int32_t value) { return constant(x.graph(), Tensor::scalar(value)); }

// x[…, begin:end, :], or x[…, begin:end] for axis -1. An end of 0 is that of the axis.
Output part(const Output& x, int axis, int32_t begin, int32_t end) {
  const int64_t to_end = end == 0 ? 2 : 0;
  if (axis == -1) {
    return strided_slice(x, numbers(x, {0, begin}), numbers(x, {0, end}), numbers(x, {1, 1}),
                         {{"ellipsis_mask", int64_t{1}}, {"end_mask", to_end}});
  }
  return strided_slice(
      x, numbers(x, {0, begin, 0}), numbers(x, {0, end, 0}), numbers(x, {1, 1, 1}),
      {{"ellipsis_mask", int64_t{1}}, {"begin_mask", int64_t{4}}, {"end_mask", 4 + to_end}});
}

// Row `i` of matrices: x[…, i, :].
Output row(const Output& x, int32_t i) { return op("GatherV2", {x, number(x, i), number(x, -2)}); }

// Moves element k + 1 to place k, and the other way round; 0 where no element comes from.
Output moved_down(const Output& x, int axis) {
  return concatenate({part(x, axis, 1, 0), zeros_like(part(x, axis, 0, 1))}, axis);
}
Output moved_up(const Output& x, int axis) {
  return concatenate({zeros_like(part(x, axis, 0, 1)), part(x, axis, 0, -1)}, axis);
}

Output sum_of_rows(const Output& x) { return sum(x, -1); }

Output as_column(const Output& diagonal) { return expand_dims(row(diagonal, 0), -1); }

// ---- TridiagonalSolve, continued

const Op solve_op{{
    .name = "TridiagonalSolve",
    .doc =
        "output = the solution of A output = rhs, where A has the superdiagonal, the diagonal and "
        "the subdiagonal in the rows of diagonals (the last element of the first row and the first "
        "of the third are not read); NaN where A is singular. partial_pivoting exchanges rows.",
    .inputs = {"diagonals: T", "rhs: T"},
    .outputs = {"output: T"},
    .attrs = {"partial_pivoting: bool = true", "perturb_singular: bool = false", types},
    .shape = infer_solve,
    .gradient =
        [](Gradient& g) {
          const Output diagonals = g.x(0), y = g.y();
          const Output transposed = stack({moved_down(row(diagonals, 2), -1), row(diagonals, 1),
                                           moved_up(row(diagonals, 0), -1)},
                                          -2);
          const Output dx = op("TridiagonalSolve", {transposed, g.dy()},
                               {{"partial_pivoting", g.attr<bool>("partial_pivoting")},
                                {"perturb_singular", g.attr<bool>("perturb_singular")}});
          g.dx(0) = -stack({sum_of_rows(dx * moved_down(y, -2)), sum_of_rows(dx * y),
                            sum_of_rows(dx * moved_up(y, -2))},
                           -2);
          g.dx(1) = dx;
        },
    .kernels = {cpu_kernel(
        "T", MatrixTypes{},
        []<class T>(TypeTag<T> t, const KernelRequest& r) { return prepare_solve(t, r); })},
    .examples =
        {{.inputs = {floats({3, 3}, {1, 1, 0, 2, 2, 2, 0, 1, 1}), floats({3, 1}, {4, 8, 8})},
          .outputs = {floats({3, 1}, {1, 2, 3})}},
         {.inputs = {floats({3, 3}, {1, 1, 0, 2, 2, 2, 0, 1, 1}), floats({3, 1}, {4, 8, 8})},
          .attrs = {{"partial_pivoting", false}},
          .outputs = {floats({3, 1}, {1, 2, 3})}}},
}};

// ---- TridiagonalMatMul

void infer_product(ShapeContext& c) {
  const Shape batch = common_batch(c);
  const Shape& rhs = c.input(3);
  int64_t n = rhs.has_rank() ? last_but_one(rhs) : any;
  for (int i = 0; i < 3; ++i) {
    const Shape& diagonal = c.input(i);
    if (!diagonal.has_rank()) continue;
    const int64_t rows = last_but_one(diagonal), extent = last(diagonal);
    check((rows == any || rows == 1) && (extent == any || n == any || extent == n), "input ",
          c.input_name(i), " must have 1 row, with one element per row of rhs (", n, "); got ",
          diagonal);
    if (n == any) n = extent;
  }
  c.set_output(0, rhs.has_rank() ? with_extents(batch, n, last(rhs)) : rhs);
}

template <class T>
BoundKernel prepare_product(TypeTag<T>, const KernelRequest& r) {
  const Shape& rhs = r.inputs[3].shape;
  const int64_t n = last_but_one(rhs), columns = last(rhs);
  if (rhs.elements() == 0) return {};
  return BoundKernel::of([=, rows = rhs.elements() / columns](const Arguments& a) {
    const T *above = a.input<T>(0), *diagonal = a.input<T>(1), *below = a.input<T>(2);
    for (int64_t i = 0; i < rows; ++i) {
      const T* x = a.input<T>(3) + i * columns;
      T* y = a.output<T>() + i * columns;
      const bool is_first = i % n == 0, is_last = i % n == n - 1;
      for (int64_t j = 0; j < columns; ++j) {
        T sum = diagonal[i] * x[j];
        if (!is_last) sum += above[i] * x[j + columns];
        if (!is_first) sum += below[i] * x[j - columns];
        y[j] = sum;
      }
    }
  });
}

const Op product_op{{
    .name = "TridiagonalMatMul",
    .doc = "output[i] = superdiag[i] rhs[i + 1] + maindiag[i] rhs[i] + subdiag[i] rhs[i - 1], rows "
           "of rhs [n, m] with factors [1, n].",
    .inputs = {"superdiag: T", "maindiag: T", "subdiag: T", "rhs: T"},
    .outputs = {"output: T"},
    .attrs = {types},
    .shape = infer_product,
    .gradient =
        [](Gradient& g) {
          const Output x = g.x(3), dy = g.dy();
          g.dx(0) = expand_dims(sum_of_rows(moved_down(x, -2) * dy), -2);
          g.dx(1) = expand_dims(sum_of_rows(x * dy), -2);
          g.dx(2) = expand_dims(sum_of_rows(moved_up(x, -2) * dy), -2);
          g.dx(3) = add_n({moved_up(as_column(g.x(0)) * dy, -2), as_column(g.x(1)) * dy,
                           moved_down(as_column(g.x(2)) * dy, -2)});
        },
    .kernels = {cpu_kernel(
        "T", MatrixTypes{},
        []<class T>(TypeTag<T> t, const KernelRequest& r) { return prepare_product(t, r); })},
    .examples = {{.inputs = {floats({1, 3}, {1, 2, 9}), floats({1, 3}, {3, 4, 5}),
                             floats({1, 3}, {9, 6, 7}), floats({3, 1}, {1, 2, 3})},
                  .outputs = {floats({3, 1}, {5, 20, 29})}}},
}};

}  // namespace
}  // namespace leat
