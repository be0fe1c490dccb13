// kernels/cuda/linear_algebra/ against the CPU's kernels; factors that are not unique by what they
// are factors of.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "kernels/examples.h"
#include "tests/cuda/host_gpu.h"
#include "tests/kernels/agreement.h"

namespace leat {
namespace {

using Numbers = std::vector<double>;

// From -1 to 1.
Numbers pseudo_random(int64_t n, int seed = 1) {
  Numbers out(n);
  for (int64_t i = 0; i < n; ++i) out[i] = std::sin(static_cast<double>(7 * i * i + 3 * i + seed));
  return out;
}

Shape with(Shape batch, std::initializer_list<int64_t> extents) {
  for (const int64_t extent : extents) batch.push_back(extent);
  return batch;
}

Tensor random_matrices(DType dtype, const Shape& shape, int seed = 1) {
  return from_doubles(dtype, shape, pseudo_random(shape.elements(), seed));
}

// With `diagonal` added to their diagonals.
Tensor square_matrices(DType dtype, const Shape& batch, int64_t n, double diagonal) {
  const Shape shape = with(batch, {n, n});
  Numbers values = pseudo_random(shape.elements());
  for (int64_t i = 0; i < shape.elements(); ++i)
    if (i / n % n == i % n) values[i] += diagonal;
  return from_doubles(dtype, shape, values);
}

void expect_agreement(const std::string& op, const std::vector<Tensor>& inputs,
                      const AttrMap& attrs = {}, double tolerance = 0) {
  std::string what = concat(op, " of ", inputs[0].dtype());
  for (const Tensor& input : inputs) what += concat(" ", input.shape());
  try {
    const std::vector<Tensor> expected = run_op(op, inputs, attrs);
    for (const bool in_place : {false, true}) {
      set_order_of_threads(in_place ? 77 : 0);
      const std::vector<Tensor> actual = run_op(op, inputs, attrs, host_gpu(), exactly(in_place));
      ASSERT_EQ(actual.size(), expected.size());
      for (size_t i = 0; i < actual.size(); ++i) {
        expect_equal(actual[i], expected[i], std::max(tolerance, tolerance_of(inputs[0].dtype())),
                     what);
      }
    }
  } catch (const Error& error) {
    ADD_FAILURE() << what << ": " << error.message();
  }
  set_order_of_threads(0);
}

class GpuMatrices : public testing::TestWithParam<DType> {
 protected:
  DType dtype = GetParam();
};
INSTANTIATE_TEST_SUITE_P(Dtypes, GpuMatrices, testing::Values(f32, f64));

TEST_P(GpuMatrices, AreSolvedAsOnTheCpu) {
  for (const Shape& batch : {Shape{}, Shape{1}, Shape{2, 3}}) {
    for (const int64_t n : {1, 2, 33, 40}) {
      const Tensor a = square_matrices(dtype, batch, n, 10);
      expect_agreement("Cholesky", {a});
      expect_agreement("MatrixDeterminant", {square_matrices(dtype, batch, n, 1.5)}, {}, 2e-5);
      expect_agreement("LogMatrixDeterminant", {square_matrices(dtype, batch, n, -3)});
      for (const bool adjoint : {false, true}) {
        expect_agreement("MatrixInverse", {a}, {{"adjoint", adjoint}});
        for (const int64_t columns : {1, 2, 35}) {
          const Tensor b = random_matrices(dtype, with(batch, {n, columns}));
          expect_agreement("MatrixSolve", {a, b}, {{"adjoint", adjoint}});
          for (const bool lower : {false, true}) {
            expect_agreement("MatrixTriangularSolve", {a, b},
                             {{"adjoint", adjoint}, {"lower", lower}});
          }
        }
      }
    }
  }
}

TEST_P(GpuMatrices, AreBroadcastToTriangularSolves) {
  const std::pair<Shape, Shape> batches[] = {{{}, {2, 3}},     {{2, 3}, {}},  {{3}, {2, 3}},
                                             {{2, 1}, {1, 3}}, {{1, 1}, {3}}, {{2, 1, 3}, {4, 1}}};
  for (const auto& [of_matrix, of_rhs] : batches) {
    expect_agreement("MatrixTriangularSolve", {square_matrices(dtype, of_matrix, 4, 5),
                                               random_matrices(dtype, with(of_rhs, {4, 3}))});
  }
}

TEST_P(GpuMatrices, SolveLeastSquaresAsOnTheCpu) {
  const std::pair<int64_t, int64_t> extents[] = {{1, 1}, {6, 3},   {3, 6},
                                                 {5, 5}, {20, 17}, {17, 20}};
  for (const bool fast : {false, true}) {
    for (const auto& [m, n] : extents) {
      for (const int64_t columns : {1, 3}) {
        expect_agreement("MatrixSolveLs",
                         {random_matrices(dtype, {2, m, n}),
                          random_matrices(dtype, {2, m, columns}, 5), Tensor::scalar(0.25)},
                         {{"fast", fast}}, 1e-10);
      }
    }
    // As many zeros as there are unknowns; nothing to solve.
    expect_agreement("MatrixSolveLs",
                     {Tensor(dtype, {2, 0, 3}), Tensor(dtype, {2, 0, 2}), Tensor::scalar(0.0)},
                     {{"fast", fast}});
    EXPECT_THROW(run_op("MatrixSolveLs",
                        {random_matrices(dtype, {3, 2}), random_matrices(dtype, {3, 1}),
                         Tensor::scalar(-1.0)},
                        {{"fast", fast}}, host_gpu()),
                 Error);
  }
  // The shortest solution of one equation for two unknowns, given twice.
  const Tensor twice = from_doubles(dtype, {2, 2}, {1, 2, 1, 2}),
               right = from_doubles(dtype, {2, 1}, {5, 5}), none = Tensor::scalar(0.0);
  expect_agreement("MatrixSolveLs", {twice, right, none}, {{"fast", false}});
  const double nan = std::nan("");
  expect_equal(run_op("MatrixSolveLs", {twice, right, none}, {}, host_gpu(), exactly())[0],
               from_doubles(dtype, {2, 1}, {nan, nan}), 0, "of a low rank");
}

TEST_P(GpuMatrices, MayHaveNoElements) {
  for (const Shape& shape : {Shape{0, 0}, Shape{2, 0, 0}, Shape{0, 3, 3}}) {
    const Tensor none(dtype, shape);
    for (const char* op : {"Cholesky", "MatrixInverse", "MatrixDeterminant", "LogMatrixDeterminant",
                           "Qr", "Svd", "SelfAdjointEigV2"})
      expect_agreement(op, {none});
  }
  for (const Shape& shape : {Shape{3, 0}, Shape{0, 3}, Shape{2, 0, 2}}) {
    for (const bool full : {false, true}) {
      for (const char* op : {"Qr", "Svd"})
        expect_agreement(op, {Tensor(dtype, shape)}, {{"full_matrices", full}});
    }
  }
}

TEST_P(GpuMatrices, WithoutAResultAreNaN) {
  const double nan = std::nan("");
  // Indefinite, fine, and with NaN in the triangle that is read.
  const Tensor l =
      run_op("Cholesky", {from_doubles(dtype, {3, 2, 2}, {1, 2, 2, 1, 4, 9, 2, 10, 1, 0, nan, 4})},
             {}, host_gpu(), exactly())[0];
  expect_equal(l, from_doubles(dtype, {3, 2, 2}, {nan, 0, nan, nan, 2, 0, 1, 3, nan, 0, nan, nan}),
               1e-5, "Cholesky");
  const Tensor singular = from_doubles(dtype, {2, 2, 2}, {1, 2, 2, 4, 0, 2, 1, 4});
  expect_equal(run_op("MatrixInverse", {singular}, {}, host_gpu(), exactly())[0],
               from_doubles(dtype, {2, 2, 2}, {nan, nan, nan, nan, -2, 1, 0.5, 0}), 1e-5,
               "MatrixInverse");
  expect_equal(run_op("MatrixSolve", {singular, from_doubles(dtype, {2, 2, 1}, {1, 1, 4, 9})}, {},
                      host_gpu(), exactly())[0],
               from_doubles(dtype, {2, 2, 1}, {nan, nan, 1, 2}), 1e-5, "MatrixSolve");
  expect_agreement("MatrixDeterminant", {singular});
  expect_agreement("LogMatrixDeterminant", {singular});
  for (const double bad : {nan, HUGE_VAL}) {
    const Tensor some = from_doubles(dtype, {2, 2, 2}, {1, bad, bad, 1, 2, 0, 0, 5});
    for (const char* op : {"Svd", "SelfAdjointEigV2"}) {
      const std::vector<Tensor> out = run_op(op, {some}, {}, host_gpu(), exactly());
      const Numbers values = to_doubles(out[0]), vectors = to_doubles(out[1]);
      for (const int i : {0, 1}) {
        EXPECT_TRUE(std::isnan(values[i])) << op;
        EXPECT_FALSE(std::isnan(values[2 + i])) << op;
      }
      for (const int i : {0, 1, 2, 3}) {
        EXPECT_TRUE(std::isnan(vectors[i])) << op;
        EXPECT_FALSE(std::isnan(vectors[4 + i])) << op;
      }
    }
  }
}

// ---- Factors

// One of a batch.
struct Matrix {
  int64_t m, n;
  Numbers values;
  Matrix(int64_t m, int64_t n) : m(m), n(n), values(m * n) {}
  Matrix(const Tensor& all, int64_t b)
      : Matrix(all.shape()[all.shape().rank() - 2], all.shape()[all.shape().rank() - 1]) {
    const Numbers numbers = to_doubles(all);
    std::copy_n(numbers.begin() + b * m * n, m * n, values.begin());
  }
  double& at(int64_t i, int64_t j) { return values[i * n + j]; }
  double at(int64_t i, int64_t j) const { return values[i * n + j]; }
};

// a diag(d) b'
Matrix product(const Matrix& a, const Numbers& d, const Matrix& b) {
  Matrix out(a.m, b.m);
  for (int64_t i = 0; i < a.m; ++i) {
    for (int64_t j = 0; j < b.m; ++j) {
      for (size_t k = 0; k < d.size(); ++k)
        out.at(i, j) += a.at(i, static_cast<int64_t>(k)) * d[k] * b.at(j, static_cast<int64_t>(k));
    }
  }
  return out;
}

void expect_near(const Matrix& a, const Matrix& b, double tolerance, const std::string& what) {
  ASSERT_EQ(a.values.size(), b.values.size()) << what;
  for (size_t i = 0; i < a.values.size(); ++i)
    ASSERT_NEAR(a.values[i], b.values[i], tolerance) << what << ", element " << i;
}

void expect_orthonormal_columns(const Matrix& a, double tolerance, const std::string& what) {
  Matrix transposed(a.n, a.m), unit(a.n, a.n);
  for (int64_t i = 0; i < a.m; ++i)
    for (int64_t j = 0; j < a.n; ++j) transposed.at(j, i) = a.at(i, j);
  for (int64_t i = 0; i < a.n; ++i) unit.at(i, i) = 1;
  expect_near(product(transposed, Numbers(a.m, 1.0), transposed), unit, tolerance, what);
}

enum class Kind { random, of_rank_one, zero, unit, graded };

Tensor matrices_of(Kind kind, DType dtype, int64_t m, int64_t n) {
  Numbers values = pseudo_random(2 * m * n);
  for (int64_t at = 0; at < 2 * m * n; ++at) {
    const int64_t i = at / n % m, j = at % n;
    if (kind == Kind::of_rank_one) values[at] = 2;
    if (kind == Kind::zero) values[at] = 0;
    if (kind == Kind::unit) values[at] = i == j ? 1 : 0;
    if (kind == Kind::graded) values[at] *= std::pow(10.0, -static_cast<double>(j % 13));
  }
  return from_doubles(dtype, {2, m, n}, values);
}

// Those that tests make larger than 32, where the vectors are more than one block has.
constexpr bool is_large(Kind kind) { return kind == Kind::random || kind == Kind::of_rank_one; }
constexpr Kind kinds[] = {Kind::random, Kind::of_rank_one, Kind::zero, Kind::unit, Kind::graded};

// The CPU's values in double precision, rounded.
Tensor values_of(const std::string& op, const Tensor& a, const AttrMap& attrs) {
  const Tensor wide = run_op(op, {from_doubles(f64, a.shape(), to_doubles(a))}, attrs)[0];
  return from_doubles(a.dtype(), wide.shape(), to_doubles(wide));
}

TEST_P(GpuMatrices, AreProductsOfSingularVectors) {
  const double tolerance = dtype == f64 ? 1e-12 : 1e-5;
  const std::pair<int64_t, int64_t> extents[] = {{1, 1}, {5, 3}, {3, 5}, {17, 16}, {34, 40}};
  for (const Kind kind : kinds) {
    for (const auto& [m, n] : extents) {
      if (n > 32 && !is_large(kind)) continue;
      const Tensor a = matrices_of(kind, dtype, m, n);
      const std::string what = concat("kind ", static_cast<int>(kind), ", ", m, " x ", n);
      const Tensor expected = values_of("Svd", a, {{"compute_uv", false}});
      expect_equal(run_op("Svd", {a}, {{"compute_uv", false}}, host_gpu(), exactly())[0], expected,
                   tolerance, what);
      for (const bool full : {false, true}) {
        set_order_of_threads(full ? 5 : 0);
        const std::vector<Tensor> svd =
            run_op("Svd", {a}, {{"full_matrices", full}}, host_gpu(), exactly());
        expect_equal(svd[0], expected, tolerance, what);
        for (const int64_t b : {0, 1}) {
          const Matrix u(svd[1], b), v(svd[2], b);
          EXPECT_EQ(u.n, full ? m : std::min(m, n));
          EXPECT_EQ(v.n, full ? n : std::min(m, n));
          expect_orthonormal_columns(u, tolerance, what);
          expect_orthonormal_columns(v, tolerance, what);
          const Numbers all = to_doubles(svd[0]);
          const int64_t k = std::min(m, n);
          expect_near(product(u, Numbers(all.begin() + b * k, all.begin() + (b + 1) * k), v),
                      Matrix(a, b), tolerance, what);
        }
      }
    }
  }
  set_order_of_threads(0);
}

TEST_P(GpuMatrices, AreProductsOfEigenvectors) {
  const double tolerance = dtype == f64 ? 1e-12 : 1e-5;
  for (const Kind kind : kinds) {
    for (const int64_t n : {1, 5, 17, 40}) {
      if (n > 32 && !is_large(kind)) continue;
      const Tensor a = matrices_of(kind, dtype, n, n);
      const std::string what = concat("kind ", static_cast<int>(kind), ", ", n);
      const Tensor expected = values_of("SelfAdjointEigV2", a, {{"compute_v", false}});
      expect_equal(
          run_op("SelfAdjointEigV2", {a}, {{"compute_v", false}}, host_gpu(), exactly())[0],
          expected, tolerance, what);
      const std::vector<Tensor> eigen = run_op("SelfAdjointEigV2", {a}, {}, host_gpu(), exactly());
      expect_equal(eigen[0], expected, tolerance, what);
      for (const int64_t b : {0, 1}) {
        Matrix lower(a, b);
        for (int64_t i = 0; i < n; ++i)
          for (int64_t j = 0; j < i; ++j) lower.at(j, i) = lower.at(i, j);
        const Matrix v(eigen[1], b);
        expect_orthonormal_columns(v, tolerance, what);
        const Numbers all = to_doubles(eigen[0]);
        expect_near(product(v, Numbers(all.begin() + b * n, all.begin() + (b + 1) * n), v), lower,
                    tolerance, what);
      }
    }
  }
}

// Eigenvalues of opposite signs, or equal ones: their vectors must not mix.
TEST_P(GpuMatrices, HaveTheEigenvectorsOfOppositeEigenvalues) {
  const Tensor a = from_doubles(dtype, {1, 2, 2}, {0, 7, 1, 0});
  const std::vector<Tensor> eigen = run_op("SelfAdjointEigV2", {a}, {}, host_gpu(), exactly());
  expect_equal(eigen[0], from_doubles(dtype, {1, 2}, {-1, 1}), 1e-6, "values");
  const Matrix v(eigen[1], 0);
  EXPECT_NEAR(v.at(0, 0), -v.at(1, 0), 1e-6);
  EXPECT_NEAR(v.at(0, 1), v.at(1, 1), 1e-6);
}

TEST_P(GpuMatrices, AreProductsOfQAndR) {
  const std::pair<int64_t, int64_t> extents[] = {{1, 1}, {5, 3},   {3, 5},
                                                 {1, 3}, {40, 33}, {33, 40}};
  for (const auto& [m, n] : extents) {
    for (const bool full : {false, true}) {
      // The columns of q behind those that r needs depend on rounding errors alone.
      expect_agreement("Qr", {matrices_of(Kind::random, dtype, m, n)}, {{"full_matrices", full}});
      expect_agreement("Qr", {matrices_of(Kind::unit, dtype, m, n)}, {{"full_matrices", full}});
    }
  }
}

}  // namespace
}  // namespace leat
