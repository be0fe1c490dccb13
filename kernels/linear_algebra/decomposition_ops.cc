// Decompositions of matrices [..., m, n]: Qr, Svd, SelfAdjointEigV2, Lu; and MatrixSolveLs, least
// squares, which alone is computed in double precision: its normal equations square the condition.
#include <numeric>

#include "core/execution/step_end.h"
#include "graph/gradient.h"
#include "graph/ops.h"
#include "graph/shape_inference.h"
#include "kernels/cpu.h"
#include "kernels/examples.h"
#include "kernels/extents.h"
#include "kernels/linear_algebra/decomposition.h"

namespace leat {
namespace {

using MatrixTypes = Types<float, double, complex64, complex128>;
const char* const types = "T: {double, float, half, complex64, complex128}";

// The extents of the last two axes, and how many matrices there are.
struct Extents {
  int64_t m, n, count = 1;

  explicit Extents(const Shape& shape) : m(shape[shape.rank() - 2]), n(shape[shape.rank() - 1]) {
    for (int axis = 0; axis < shape.rank() - 2; ++axis) count *= shape[axis];
  }
};

// The batch's axes, then these.
Shape with_extents(const Shape& matrices, std::initializer_list<int64_t> extents) {
  if (!matrices.has_rank()) return matrices;
  Shape out(matrices.dims().first(matrices.rank() - 2));
  for (const int64_t extent : extents) out.push_back(extent);
  return out;
}

int64_t least(int64_t a, int64_t b) { return a == any || b == any ? any : std::min(a, b); }

Shape square(ShapeContext& c) {
  const Shape input = c.with_rank_at_least(0, 2);
  if (!input.has_rank()) return input;
  const int64_t m = input[input.rank() - 2], n = input[input.rank() - 1];
  check(m == any || n == any || m == n, "Input matrix must be square, got shape ", input);
  const int64_t extent = m == any ? n : m;
  return with_extents(input, {extent, extent});
}

// A kernel that calls f(matrix, its number, arguments) for every matrix of input 0.
template <class T, class F>
BoundKernel for_each_matrix(const KernelRequest& r, F f) {
  const Extents e(r.inputs[0].shape);
  if (are_empty(r.outputs)) return {};
  BoundKernel kernel = BoundKernel::of([e, f](const Arguments& a) {
    for (int64_t b = 0; b < e.count; ++b) {
      StepEnd::ask();
      const T* const from = a.input<T>(0) + b * e.m * e.n;
      f(DenseMatrix<T>(from, from + e.m * e.n), b, a);
    }
  });
  kernel.cost_ns = 5.0 * static_cast<double>(e.count * e.m * e.n * std::max(e.m, e.n));
  return kernel;
}

// ---- Qr

template <class T>
BoundKernel prepare_qr(TypeTag<T>, const KernelRequest& r) {
  const Extents e(r.inputs[0].shape);
  return for_each_matrix<T>(r, [e, full = r.attr<bool>("full_matrices")](
                                   const DenseMatrix<T>& matrix, int64_t b, const Arguments& a) {
    const QrFactors qr(matrix, e.m, e.n, full);
    narrow(qr.q, a.output<T>(0) + b * static_cast<int64_t>(qr.q.size()));
    narrow(qr.r, a.output<T>(1) + b * static_cast<int64_t>(qr.r.size()));
  });
}

const Op qr_op{{
    .name = "Qr",
    .doc = "q r = input, where q has orthonormal columns and r is 0 below its diagonal; q is "
           "square with full_matrices.",
    .inputs = {"input: T"},
    .outputs = {"q: T", "r: T"},
    .attrs = {"full_matrices: bool = false", types},
    .shape =
        [](ShapeContext& c) {
          const Shape input = c.with_rank_at_least(0, 2);
          if (!input.has_rank()) {
            for (const int i : {0, 1}) c.set_output(i, input);
            return;
          }
          const int64_t m = input[input.rank() - 2], n = input[input.rank() - 1],
                        k = c.attr<bool>("full_matrices") ? m : least(m, n);
          c.set_output(0, with_extents(input, {m, k}));
          c.set_output(1, with_extents(input, {k, n}));
        },
    .kernels = {cpu_kernel(
        "T", MatrixTypes{},
        []<class T>(TypeTag<T> t, const KernelRequest& r) { return prepare_qr(t, r); })},
    .examples = {{.inputs = {floats({2, 2}, {3, 0, 4, 5})},
                  .outputs = {floats({2, 2}, {-0.6F, -0.8F, -0.8F, 0.6F}),
                              floats({2, 2}, {-5, -4, 0, 3})}}},
}};

// ---- Svd

template <class T>
BoundKernel prepare_svd(TypeTag<T>, const KernelRequest& r) {
  const Extents e(r.inputs[0].shape);
  return for_each_matrix<T>(
      r, [e, full = r.attr<bool>("full_matrices"), wants_vectors = r.attr<bool>("compute_uv")](
             const DenseMatrix<T>& matrix, int64_t b, const Arguments& a) {
        const SvdFactors svd(matrix, e.m, e.n, full, wants_vectors);
        narrow(svd.s, a.output<T>(0) + b * static_cast<int64_t>(svd.s.size()));
        if (!wants_vectors) return;
        narrow(svd.u, a.output<T>(1) + b * static_cast<int64_t>(svd.u.size()));
        narrow(svd.v, a.output<T>(2) + b * static_cast<int64_t>(svd.v.size()));
      });
}

const Op svd_op{{
    .name = "Svd",
    .doc = "u diag(s) vᵀ = input, where u and v have orthonormal columns and s is in falling "
           "order; u and v are square with full_matrices, and empty without compute_uv.",
    .inputs = {"input: T"},
    .outputs = {"s: T", "u: T", "v: T"},
    .attrs = {"compute_uv: bool = true", "full_matrices: bool = false", types},
    .shape =
        [](ShapeContext& c) {
          const Shape input = c.with_rank_at_least(0, 2);
          const bool wants_vectors = c.attr<bool>("compute_uv"),
                     full = c.attr<bool>("full_matrices");
          for (int i = 0; i < 3; ++i)
            c.set_output(i, i > 0 && !wants_vectors ? Shape{0} : Shape::unknown());
          if (!input.has_rank()) return;
          const int64_t m = input[input.rank() - 2], n = input[input.rank() - 1], k = least(m, n);
          c.set_output(0, with_extents(input, {k}));
          if (!wants_vectors) return;
          c.set_output(1, with_extents(input, {m, full ? m : k}));
          c.set_output(2, with_extents(input, {n, full ? n : k}));
        },
    .kernels = {cpu_kernel(
        "T", MatrixTypes{},
        []<class T>(TypeTag<T> t, const KernelRequest& r) { return prepare_svd(t, r); })},
    .examples = {{.inputs = {floats({2, 2}, {0, 2, 1, 0})},
                  .attrs = {{"compute_uv", false}},
                  .outputs = {floats({2, 1}), floats({}), floats({})}}},
}};

// ---- SelfAdjointEigV2

template <class T>
BoundKernel prepare_eigen(TypeTag<T>, const KernelRequest& r) {
  const int64_t n = Extents(r.inputs[0].shape).n;
  return for_each_matrix<T>(r, [n, wants_vectors = r.attr<bool>("compute_v")](
                                   DenseMatrix<T> matrix, int64_t b, const Arguments& a) {
    const SelfAdjointEigen eigen(std::move(matrix), n, wants_vectors);
    narrow(eigen.values, a.output<T>(0) + b * n);
    if (wants_vectors) narrow(eigen.vectors, a.output<T>(1) + b * n * n);
  });
}

// The lower triangle of v (diag(de) + f ∘ vᵀ dv) vᵀ, because nothing else is read; f has 1 / (e[j]
// - e[i]) at i, j, and 0 on its diagonal.
void eigen_gradient(Gradient& g) {
  Output e = g.y(0), v = g.y(1);
  if (!g.attr<bool>("compute_v")) {
    const std::vector<Output> both = op_outputs("SelfAdjointEigV2", {g.x()}, {{"compute_v", true}});
    e = both[0];
    v = both[1];
  }
  Output inner;
  if (g.dy(0)) inner = op("MatrixDiag", {g.dy(0)});
  if (g.dy(1)) {
    const Output differences = expand_dims(e, -2) - expand_dims(e, -1);
    const Output f = op("MatrixSetDiag", {reciprocal(differences), zeros_like(e)});
    const Output by_vectors = f * matmul(v, g.dy(1), {.adjoint_a = true});
    inner = inner ? inner + by_vectors : by_vectors;
  }
  if (!inner) return;
  const Output da = matmul(v, matmul(inner, v, {.adjoint_b = true}));
  const auto number = [&](int64_t value) { return constant(g.graph(), Tensor::scalar(value)); };
  const Output lower = op("MatrixBandPart",
                          {da + matmul(v, matmul(inner, v, {.adjoint_a = true, .adjoint_b = true})),
                           number(-1), number(0)});
  g.dx() = op("MatrixSetDiag", {lower, op("MatrixDiagPart", {da})});
}

const Op eigen_op{{
    .name = "SelfAdjointEigV2",
    .doc = "e = the eigenvalues, in rising order, of self-adjoint matrices of which only the lower "
           "triangle is read; v = their eigenvectors as columns, or nothing without compute_v.",
    .inputs = {"input: T"},
    .outputs = {"e: T", "v: T"},
    .attrs = {"compute_v: bool = true", types},
    .shape =
        [](ShapeContext& c) {
          const Shape input = square(c);
          c.set_output(0, input.has_rank() ? with_extents(input, {input[input.rank() - 1]})
                                           : Shape::unknown());
          c.set_output(1, c.attr<bool>("compute_v") ? input : Shape{0});
        },
    .gradient = eigen_gradient,
    .kernels = {cpu_kernel(
        "T", MatrixTypes{},
        []<class T>(TypeTag<T> t, const KernelRequest& r) { return prepare_eigen(t, r); })},
    .examples = {{.inputs = {floats({2, 2}, {2, 9, 1, 2})},
                  .attrs = {{"compute_v", false}},
                  .outputs = {floats({1, 3}), floats({})}}},
}};

// ---- Lu

template <class T, class Index>
BoundKernel bind_lu(const KernelRequest& r) {
  const int64_t n = Extents(r.inputs[0].shape).n;
  return for_each_matrix<T>(r, [n](DenseMatrix<T> matrix, int64_t b, const Arguments& a) {
    const Lu lu(std::move(matrix), n);
    lu.check_invertible();
    narrow(lu.a, a.output<T>(0) + b * n * n);
    std::copy(lu.rows.begin(), lu.rows.end(), a.output<Index>(1) + b * n);
  });
}

const Op lu_op{{
    .name = "Lu",
    .doc = "l u = the rows p of input: l below the diagonal, with a diagonal of 1, u from it on.",
    .inputs = {"input: T"},
    .outputs = {"lu: T", "p: output_idx_type"},
    .attrs = {types, "output_idx_type: {int32, int64} = int32"},
    .shape =
        [](ShapeContext& c) {
          const Shape input = square(c);
          c.set_output(0, input);
          c.set_output(1,
                       input.has_rank() ? with_extents(input, {input[input.rank() - 1]}) : input);
        },
    .kernels = {cpu_kernel("T", MatrixTypes{},
                           []<class T>(TypeTag<T>, const KernelRequest& r) {
                             return r.outputs[1].dtype == DType::i64 ? bind_lu<T, int64_t>(r)
                                                                     : bind_lu<T, int32_t>(r);
                           })},
    .examples = {{.inputs = {floats({2, 2}, {1, 3, 2, 4})},
                  .outputs = {floats({2, 2}, {2, 4, 0.5, 1}), ints({1, 0})}}},
}};

// ---- MatrixSolveLs

// a b, or a' b with a [inner, rows].
template <class W>
std::vector<W> product(const std::vector<W>& a, bool adjoint, const std::vector<W>& b, int64_t rows,
                       int64_t inner, int64_t columns) {
  std::vector<W> out(rows * columns);
  for (int64_t i = 0; i < rows; ++i) {
    for (int64_t k = 0; k < inner; ++k) {
      const W x = adjoint ? conjugate(a[k * rows + i]) : a[i * inner + k];
      for (int64_t j = 0; j < columns; ++j) out[i * columns + j] += x * b[k * columns + j];
    }
  }
  return out;
}

// x with s x = b for a positive definite s [n, n], by Cholesky's decomposition.
template <class W>
std::vector<W> solve_positive(std::vector<W> s, std::vector<W> b, int64_t n, int64_t columns) {
  for (int64_t j = 0; j < n; ++j) {
    const double diagonal = std::real(s[j * n + j]);
    double rest = diagonal;
    for (int64_t k = 0; k < j; ++k) rest -= std::norm(s[j * n + k]);
    check(rest > 1e-15 * diagonal,
          "Input matrix was rank deficient or ill-conditioned. Try setting fast=False or provide a "
          "larger l2_regularizer > 0.");
    s[j * n + j] = std::sqrt(rest);
    for (int64_t i = j + 1; i < n; ++i) {
      for (int64_t k = 0; k < j; ++k) s[i * n + j] -= s[i * n + k] * conjugate(s[j * n + k]);
      s[i * n + j] /= s[j * n + j];
    }
  }
  for (int64_t c = 0; c < columns; ++c) {
    for (int64_t i = 0; i < n; ++i) {
      for (int64_t k = 0; k < i; ++k) b[i * columns + c] -= s[i * n + k] * b[k * columns + c];
      b[i * columns + c] /= s[i * n + i];
    }
    for (int64_t i = n; i-- > 0;) {
      for (int64_t k = i + 1; k < n; ++k)
        b[i * columns + c] -= conjugate(s[k * n + i]) * b[k * columns + c];
      b[i * columns + c] /= s[i * n + i];
    }
  }
  return b;
}

// By the normal equations, of the smaller of a'a and a a'.
template <class W>
std::vector<W> solve_fast(const std::vector<W>& a, const std::vector<W>& b, int64_t m, int64_t n,
                          int64_t columns, double regularizer) {
  const int64_t extent = std::min(m, n);
  std::vector<W> gram =
      m >= n ? product(a, true, a, n, m, n) : product(a, false, adjoint_of(a, m, n), m, n, m);
  for (int64_t i = 0; i < extent; ++i) gram[i * extent + i] += regularizer;
  if (m >= n)
    return solve_positive(std::move(gram), product(a, true, b, n, m, columns), n, columns);
  return product(a, true, solve_positive(std::move(gram), b, m, columns), n, m, columns);
}

// The shortest of all solutions.
template <class W>
std::vector<W> solve_slowly(const std::vector<W>& a, const std::vector<W>& b, int64_t m, int64_t n,
                            int64_t columns) {
  const int64_t k = std::min(m, n);
  const SvdFactors svd(a, m, n, false);
  std::vector<W> y = product(svd.u, true, b, k, m, columns);
  for (int64_t i = 0; i < k; ++i) {
    const bool is_zero = svd.s[i] <= svd.s[0] * 2.2e-16 * static_cast<double>(std::max(m, n));
    for (int64_t c = 0; c < columns; ++c)
      y[i * columns + c] = is_zero ? W(0) : y[i * columns + c] / svd.s[i];
  }
  return product(svd.v, false, y, n, k, columns);
}

template <class T>
BoundKernel prepare_least_squares(TypeTag<T>, const KernelRequest& r) {
  const Extents e(r.inputs[0].shape);
  const Shape& rhs = r.inputs[1].shape;
  const int64_t columns = rhs[rhs.rank() - 1];
  return for_each_matrix<T>(r, [e, columns, fast = r.attr<bool>("fast")](
                                   const DenseMatrix<T>& given, int64_t b, const Arguments& a) {
    const double regularizer = *a.input<double>(2);
    check(regularizer >= 0, "l2_regularizer must be >= 0.");
    const Wide<T> matrix(given.begin(), given.end());
    const Wide<T> right = widened(a.input<T>(1) + b * e.m * columns, e.m * columns);
    Wide<T> x(e.n * columns);
    if (e.m > 0 && e.n > 0) {
      x = fast ? solve_fast(matrix, right, e.m, e.n, columns, regularizer)
               : solve_slowly(matrix, right, e.m, e.n, columns);
    }
    narrow(x, a.output<T>() + b * e.n * columns);
  });
}

const Op least_squares_op{{
    .name = "MatrixSolveLs",
    .doc = "output = x with the least |matrix x - rhs|² + l2_regularizer |x|². With `fast` by the "
           "normal equations; else the shortest such x, without the regularizer.",
    .inputs = {"matrix: T", "rhs: T", "l2_regularizer: double"},
    .outputs = {"output: T"},
    .attrs = {types, "fast: bool = true"},
    .shape =
        [](ShapeContext& c) {
          const Shape matrix = c.with_rank_at_least(0, 2), rhs = c.with_rank_at_least(1, 2);
          c.with_rank(2, 0);
          if (!matrix.has_rank() || !rhs.has_rank()) return c.set_output(0, Shape::unknown());
          const int64_t m = matrix[matrix.rank() - 2], n = matrix[matrix.rank() - 1],
                        rows = rhs[rhs.rank() - 2], columns = rhs[rhs.rank() - 1];
          check(m == any || rows == any || m == rows, "matrix ", matrix, " and rhs ", rhs,
                " must have the same number of rows");
          const Shape batch = with_extents(matrix, {}).merged(with_extents(rhs, {}));
          Shape out = batch;
          out.push_back(n);
          out.push_back(columns);
          c.set_output(0, out);
        },
    .kernels = {cpu_kernel(
        "T", MatrixTypes{},
        []<class T>(TypeTag<T> t, const KernelRequest& r) { return prepare_least_squares(t, r); })},
    .examples = {{.inputs = {floats({3, 1}, {1, 1, 2}), floats({3, 1}, {1, 2, 3}),
                             Tensor::scalar(0.0)},
                  .outputs = {floats({1, 1}, {1.5})}}},
}};

}  // namespace
}  // namespace leat
