// Tests of linear_algebra.cc and decomposition_ops.cc beyond every_op_test.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "core/visit_dtype.h"
#include "graph/gradient.h"
#include "graph/ops.h"
#include "kernels/cpu_isa.h"
#include "kernels/linear_algebra/dense.h"
#include "tests/support/run_op.h"

namespace leat {
namespace {

// Through X Xᵀ + 2, which is symmetric for any X.
TEST(Cholesky, GradientAgreesWithCentralDifferences) {
  Graph graph;
  const Output x = placeholder(graph, "x", f64, {2, 3, 3});
  const Output two = constant(graph, Tensor::of<double>({3, 3}, {2, 0, 0, 0, 2, 0, 0, 0, 2}));
  const Output y = op("Cholesky", {matmul(x, x, {.adjoint_b = true}) + two});
  const Output weighted = sum(square(y) + y);  // dy varies between elements
  const Output dx = gradients({weighted}, {x})[0];
  Tensor value(f64, {2, 3, 3});
  for (int64_t i = 0; i < value.elements(); ++i)
    value.data<double>()[i] = std::sin(static_cast<double>(3 * i + 1));
  const Tensor gradient = evaluate({dx}, {{x.node, value}})[0];
  for (int64_t i = 0; i < value.elements(); ++i) {
    const auto at = [&](double step) {
      Tensor moved = value.clone();
      moved.data<double>()[i] += step;
      return evaluate({weighted}, {{x.node, moved}})[0].item<double>();
    };
    EXPECT_NEAR(gradient.data<double>()[i], (at(1e-5) - at(-1e-5)) / 2e-5, 1e-6) << "element " << i;
  }
}

// As in TensorFlow 2.21, which leaves the elements above the diagonal unspecified.
TEST(Cholesky, ReturnsNaNForIndefiniteMatrices) {
  Graph graph;
  const Output x =
      constant(graph, Tensor::of<double>({3, 2, 2}, {4, 0, 0, 9, 1, 2, 2, 1, 1, 0, 0, 4}));
  const Tensor l = evaluate({op("Cholesky", {x})}, {})[0];
  const double* values = l.data<double>();
  EXPECT_EQ(values[0], 2);
  EXPECT_EQ(values[3], 3);
  for (const int i : {4, 6, 7}) EXPECT_TRUE(std::isnan(values[i])) << i;
  EXPECT_EQ(values[5], 0);
  EXPECT_EQ(values[11], 2);
}

// ---- Decompositions: the product of the factors is the matrix

using Matrix = std::vector<double>;

Matrix pseudo_random(int64_t m, int64_t n) {
  Matrix out(m * n);
  for (size_t i = 0; i < out.size(); ++i)
    out[i] = std::sin(static_cast<double>(7 * i * i + 3 * i + 1));
  return out;
}

Tensor tensor_of(const Matrix& matrix, int64_t m, int64_t n) {
  return Tensor::of<double>({m, n}, std::span<const double>(matrix));
}

// a b', or a' b.
Matrix product(const Matrix& a, const Matrix& b, int64_t columns_a, int64_t columns_b,
               bool first_transposed) {
  const auto rows_a = static_cast<int64_t>(a.size()) / columns_a,
             rows_b = static_cast<int64_t>(b.size()) / columns_b;
  const int64_t m = first_transposed ? columns_a : rows_a,
                n = first_transposed ? columns_b : rows_b;
  Matrix out(m * n, 0.0);
  for (int64_t i = 0; i < m; ++i) {
    for (int64_t j = 0; j < n; ++j) {
      for (int64_t k = 0; k < (first_transposed ? rows_a : columns_a); ++k) {
        out[i * n + j] += first_transposed ? a[k * columns_a + i] * b[k * columns_b + j]
                                           : a[i * columns_a + k] * b[j * columns_b + k];
      }
    }
  }
  return out;
}

void expect_near(const Matrix& actual, const Matrix& expected, double close = 1e-12) {
  ASSERT_EQ(actual.size(), expected.size());
  for (size_t i = 0; i < actual.size(); ++i) EXPECT_NEAR(actual[i], expected[i], close) << i;
}

void expect_orthonormal_columns(const Matrix& matrix, int64_t columns, double close = 1e-12) {
  Matrix unit(columns * columns, 0.0);
  for (int64_t i = 0; i < columns; ++i) unit[i * (columns + 1)] = 1;
  expect_near(product(matrix, matrix, columns, columns, true), unit, close);
}

TEST(Svd, FactorsMultiplyToTheMatrix) {
  for (const auto& [m, n] : {std::pair<int64_t, int64_t>{5, 3}, {3, 5}, {4, 4}, {1, 3}, {30, 20}}) {
    for (const bool has_full_rank : {true, false}) {
      const Matrix a = has_full_rank ? pseudo_random(m, n) : Matrix(m * n, 2.0);
      for (const bool full : {false, true}) {
        const std::vector<Tensor> svd =
            run_op("Svd", {tensor_of(a, m, n)}, {{"full_matrices", full}});
        const Matrix s = to_doubles(svd[0]), u = to_doubles(svd[1]), v = to_doubles(svd[2]);
        const int64_t k = std::min(m, n), columns_u = svd[1].shape()[1],
                      columns_v = svd[2].shape()[1];
        EXPECT_EQ(columns_u, full ? m : k);
        EXPECT_EQ(columns_v, full ? n : k);
        expect_orthonormal_columns(u, columns_u);
        expect_orthonormal_columns(v, columns_v);
        EXPECT_TRUE(std::is_sorted(s.rbegin(), s.rend()));
        Matrix scaled(m * k), first(n * k);
        for (int64_t i = 0; i < m; ++i) {
          for (int64_t j = 0; j < k; ++j) scaled[i * k + j] = u[i * columns_u + j] * s[j];
        }
        for (int64_t i = 0; i < n; ++i) {
          for (int64_t j = 0; j < k; ++j) first[i * k + j] = v[i * columns_v + j];
        }
        expect_near(product(scaled, first, k, k, false), a);
      }
    }
  }
}

TEST(SelfAdjointEig, FactorsMultiplyToTheMatrix) {
  for (const int64_t n : {1, 2, 5, 25}) {
    for (const bool is_diagonal : {false, true}) {
      Matrix a = pseudo_random(n, n);
      for (int64_t i = 0; i < n; ++i) {
        for (int64_t j = 0; j < i; ++j)
          a[i * n + j] = a[j * n + i] = is_diagonal ? 0 : a[i * n + j];
      }
      const std::vector<Tensor> eigen = run_op("SelfAdjointEigV2", {tensor_of(a, n, n)});
      const Matrix e = to_doubles(eigen[0]), v = to_doubles(eigen[1]);
      EXPECT_TRUE(std::is_sorted(e.begin(), e.end()));
      expect_orthonormal_columns(v, n);
      Matrix scaled = v;
      for (int64_t i = 0; i < n * n; ++i) scaled[i] *= e[i % n];
      expect_near(product(scaled, v, n, n, false), a);
    }
  }
}

// ---- Complex matrices

Tensor complex_pseudo_random(int64_t m, int64_t n) {
  const Matrix parts = pseudo_random(m, 2 * n);
  Tensor out(DType::complex128, {m, n});
  for (int64_t i = 0; i < m * n; ++i) out.data<complex128>()[i] = {parts[2 * i], parts[2 * i + 1]};
  return out;
}

// The largest |x - y|.
double distance(const Output& x, const Output& y) {
  const Tensor difference = evaluate({x - y}, {})[0];
  double largest = 0;
  for (int64_t i = 0; i < difference.elements(); ++i)
    largest = std::max(largest, std::abs(difference.data<complex128>()[i]));
  return largest;
}

Output unit_matrix(const Output& of_columns) {
  return op(
      "MatrixDiag",
      {ones_like(op("MatrixDiagPart", {matmul(of_columns, of_columns, {.adjoint_a = true})}))});
}

TEST(ComplexMatrix, SvdFactorsMultiplyToTheMatrix) {
  for (const auto& [m, n] : {std::pair<int64_t, int64_t>{5, 3}, {3, 5}, {4, 4}, {1, 3}, {1, 1}}) {
    Graph graph;
    const Output a = constant(graph, complex_pseudo_random(m, n));
    const std::vector<Output> svd = op_outputs("Svd", {a});
    const Output us = matmul(svd[1], op("MatrixDiag", {svd[0]}));
    EXPECT_LT(distance(matmul(us, svd[2], {.adjoint_b = true}), a), 1e-12) << m << "x" << n;
    for (const Output& columns : {svd[1], svd[2]})
      EXPECT_LT(distance(matmul(columns, columns, {.adjoint_a = true}), unit_matrix(columns)),
                1e-12);
    const std::vector<Output> full = op_outputs("Svd", {a}, {{"full_matrices", true}});
    for (const Output& columns : {full[1], full[2]})
      EXPECT_LT(distance(matmul(columns, columns, {.adjoint_a = true}), unit_matrix(columns)),
                1e-12);
  }
}

TEST(ComplexMatrix, SelfAdjointEigFactorsMultiplyToTheMatrix) {
  for (const int64_t n : {1, 2, 5, 25}) {
    Graph graph;
    const Output half = constant(graph, complex_pseudo_random(n, n));
    const Output a = matmul(half, half, {.adjoint_b = true});
    const std::vector<Output> eigen = op_outputs("SelfAdjointEigV2", {a});
    const Output scaled = matmul(eigen[1], op("MatrixDiag", {eigen[0]}));
    EXPECT_LT(distance(matmul(scaled, eigen[1], {.adjoint_b = true}), a), 1e-11) << n;
    EXPECT_LT(distance(matmul(eigen[1], eigen[1], {.adjoint_a = true}), unit_matrix(eigen[1])),
              1e-12)
        << n;
  }
}

TEST(ComplexMatrix, QrFactorsMultiplyToTheMatrix) {
  for (const auto& [m, n] : {std::pair<int64_t, int64_t>{5, 3}, {3, 5}, {4, 4}, {1, 3}}) {
    for (const bool full : {false, true}) {
      Graph graph;
      const Output a = constant(graph, complex_pseudo_random(m, n));
      const std::vector<Output> qr = op_outputs("Qr", {a}, {{"full_matrices", full}});
      EXPECT_LT(distance(matmul(qr[0], qr[1]), a), 1e-12) << m << "x" << n;
      EXPECT_LT(distance(matmul(qr[0], qr[0], {.adjoint_a = true}), unit_matrix(qr[0])), 1e-12);
    }
  }
}

// Through x + x', weighted by both outputs; eigenvectors are squared, as their signs are free.
TEST(SelfAdjointEig, GradientAgreesWithCentralDifferences) {
  Graph graph;
  const Output x = placeholder(graph, "x", f64, {3, 3});
  const std::vector<Output> eigen = op_outputs("SelfAdjointEigV2", {x});
  const Output weights =
      constant(graph, Tensor::of<double>({3, 3}, {1, 2, -1, 0.5, 3, 1, -2, 1, 4}), "weights");
  const Output y = sum(square(eigen[0])) + sum(weights * square(eigen[1]));
  const Output dx = gradients({y}, {x})[0];
  Tensor value = tensor_of(pseudo_random(3, 3), 3, 3);
  const Tensor gradient = evaluate({dx}, {{x.node, value}})[0];
  for (int64_t i = 0; i < 9; ++i) {
    const auto at = [&](double step) {
      Tensor moved = value.clone();
      moved.data<double>()[i] += step;
      return evaluate({y}, {{x.node, moved}})[0].item<double>();
    };
    EXPECT_NEAR(gradient.data<double>()[i], (at(1e-5) - at(-1e-5)) / 2e-5, 1e-6) << "element " << i;
  }
}

// ---- The versions of dense.h: each processor has one, but all shall give the same

template <class T>
void expect_versions_agree(DenseRoutines<T> RealDenseRoutines::*type, double tolerance) {
  using Values = std::vector<T>;
  const int64_t n = 150;  // more than a block
  const Matrix wide = pseudo_random(n, n);
  Matrix square = product(wide, wide, n, n, true);
  for (int64_t i = 0; i < n; ++i) square[i * (n + 1)] += 1;
  const Values a(wide.begin(), wide.end()), positive(square.begin(), square.end());
  std::vector<Values> first;
  for (const RealDenseRoutines* version : {&dense_base, dense_avx2}) {
    if (version == nullptr || (version == dense_avx2 && cpu_isa() == Isa::base)) continue;
    const DenseRoutines<T>& run = version->*type;
    Values lu = a, l = positive, x = a, y = a, q(n * n), r(n * n), values(n), s(n);
    std::vector<int64_t> rows(n);
    run.lu(lu.data(), n, rows.data());
    run.solve_lu(lu.data(), n, x.data(), n);
    ASSERT_TRUE(run.cholesky(l.data(), n));
    run.solve_triangular(positive.data(), n, true, y.data(), n);
    run.qr(a.data(), n, n, n, q.data(), r.data());
    ASSERT_TRUE(run.eigen(positive.data(), n, values.data(), nullptr));
    ASSERT_TRUE(run.svd(a.data(), n, n, false, s.data(), nullptr, nullptr));
    const std::vector<Values> found = {lu, x, l, y, q, r, values, s};
    if (first.empty()) first = found;
    for (size_t i = 0; i < found.size(); ++i) {
      double largest = 0;
      for (const double value : first[i]) largest = std::max(largest, std::abs(value));
      for (size_t k = 0; k < found[i].size(); ++k)
        ASSERT_NEAR(found[i][k], first[i][k], tolerance * largest)
            << "result " << i << ", element " << k;
    }
  }
}

TEST(Dense, VersionsAgree) {
  expect_versions_agree(&RealDenseRoutines::f64, 1e-9);
  expect_versions_agree(&RealDenseRoutines::f32, 1e-3);
}

// Of these, the vectors of zeros are free, but they must be orthonormal.
TEST(Svd, MatricesOfLowRankHaveOrthonormalVectors) {
  const std::pair<int64_t, int64_t> extents[] = {{33, 42}, {38, 33}, {18, 62}, {64, 64}, {70, 9}};
  for (const auto& [m, n] : extents) {
    Matrix constant(m * n, 2.0), single(m * n, 0.0), columns = pseudo_random(m, n);
    single[m * n / 2] = 3;
    for (int64_t i = 0; i < m * n; ++i)
      if (i % n % 3 == 0 || i / n % 4 == 0) columns[i] = 0;
    for (const Matrix& a : {constant, single, columns, Matrix(m * n, 0.0)}) {
      for (const DType dtype : {f32, f64}) {
        const double close = dtype == f32 ? 2e-5 : 1e-12;
        const Tensor x = from_doubles(dtype, {m, n}, a);
        const std::vector<Tensor> svd = run_op("Svd", {x}, {{"full_matrices", true}});
        const Matrix s = to_doubles(svd[0]), u = to_doubles(svd[1]), v = to_doubles(svd[2]);
        expect_orthonormal_columns(u, m, close);
        expect_orthonormal_columns(v, n, close);
        Matrix scaled(m * s.size()), first(n * s.size());
        for (size_t k = 0; k < s.size(); ++k) {
          for (int64_t i = 0; i < m; ++i) scaled[i * s.size() + k] = u[i * m + k] * s[k];
          for (int64_t i = 0; i < n; ++i) first[i * s.size() + k] = v[i * n + k];
        }
        const auto rank = static_cast<int64_t>(s.size());
        expect_near(product(scaled, first, rank, rank, false), a, close * (1 + s[0]));
        EXPECT_TRUE(std::is_sorted(s.rbegin(), s.rend()));
        expect_near(to_doubles(run_op("Svd", {x}, {{"compute_uv", false}})[0]), s, close);
      }
    }
  }
}

TEST(Solve, LargeMatricesLeaveNoRest) {
  const int64_t n = 300;
  const Tensor a = tensor_of(pseudo_random(n, n), n, n);
  Graph graph;
  const Output x = constant(graph, a);
  for (const bool adjoint : {false, true}) {
    const Output back =
        matmul(x, op("MatrixInverse", {x}, {{"adjoint", adjoint}}), {.transpose_b = adjoint});
    const Tensor rest =
        evaluate({back - op("MatrixDiag", {ones_like(op("MatrixDiagPart", {x}))})})[0];
    for (const double value : to_doubles(rest)) ASSERT_NEAR(value, 0, 1e-8);
  }
}

}  // namespace
}  // namespace leat
