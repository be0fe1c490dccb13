// MatMul has several implementations, chosen by extents and types: each against the sum written
// out.
#include <gtest/gtest.h>

#include <cmath>

#include "tests/support/expect_error.h"
#include "tests/support/run_op.h"

namespace leat {
namespace {

// Small whole numbers divided by 4: exact in every type, even in bfloat16.
Tensor numbers(DType dtype, const Shape& shape, int step) {
  std::vector<double> values;
  for (int64_t i = 0; i < shape.elements(); ++i)
    values.push_back(static_cast<double>(i * step % 23 - 11) / 4);
  return from_doubles(dtype, shape, values);
}

std::vector<double> product(const Tensor& a, const Tensor& b, bool ta, bool tb) {
  const std::vector<double> x = to_doubles(a), y = to_doubles(b);
  const int64_t m = a.shape()[ta ? 1 : 0], k = a.shape()[ta ? 0 : 1], n = b.shape()[tb ? 0 : 1];
  std::vector<double> out(m * n);
  for (int64_t i = 0; i < m; ++i) {
    for (int64_t j = 0; j < n; ++j) {
      for (int64_t l = 0; l < k; ++l)
        out[i * n + j] += x[ta ? l * m + i : i * k + l] * y[tb ? j * k + l : l * n + j];
    }
  }
  return out;
}

void expect_product(DType dtype, int64_t m, int64_t n, int64_t k, int threads) {
  for (const bool ta : {false, true}) {
    for (const bool tb : {false, true}) {
      const Tensor a = numbers(dtype, ta ? Shape{k, m} : Shape{m, k}, 5);
      const Tensor b = numbers(dtype, tb ? Shape{n, k} : Shape{k, n}, 7);
      const Tensor c =
          run_op("MatMul", {a, b}, {{"transpose_a", ta}, {"transpose_b", tb}}, test_cpu(threads))
              .at(0);
      ASSERT_EQ(c.shape(), Shape({m, n}));
      const std::vector<double> actual = to_doubles(c), expected = product(a, b, ta, tb);
      const double tolerance = dtype == bf16 ? 1e-2 : dtype == f16 ? 1e-3 : 1e-6;
      for (size_t i = 0; i < actual.size(); ++i) {
        ASSERT_NEAR(actual[i], expected[i], tolerance * std::max(1.0, std::abs(expected[i])))
            << dtype << " " << m << "x" << n << "x" << k << " transposed " << ta << tb
            << " element " << i;
      }
    }
  }
}

TEST(MatMul, EqualsTheSumOfProductsForEveryTypeAndShape) {
  for (const DType dtype : {f32, f64, f16, bf16, i32, i64}) {
    for (const auto& [m, n, k] : std::vector<std::array<int64_t, 3>>{{3, 4, 5},
                                                                     {1, 1, 1},
                                                                     {1, 150, 19},
                                                                     {1, 7, 3},
                                                                     {150, 1, 9},
                                                                     {37, 35, 1},
                                                                     {37, 35, 2},
                                                                     {11, 1, 35},
                                                                     {530, 2, 19},
                                                                     {11, 3, 35},
                                                                     {530, 4, 21},
                                                                     {20, 70, 33}}) {
      expect_product(dtype, m, n, k, 1);
    }
  }
}

// Large enough for several chunks.
TEST(MatMul, ChunksOfSeveralThreadsCoverTheProduct) {
  for (const DType dtype : {f32, f64, bf16}) {
    expect_product(dtype, 300, 130, 200, 3);
    expect_product(dtype, 130, 300, 200, 3);
  }
  expect_product(f32, 1, 600, 1500, 3);
  expect_product(f32, 900, 700, 1, 3);
  expect_product(f32, 1100, 1, 900, 3);
  expect_product(f32, 1100, 3, 900, 3);
}

TEST(MatMul, ReturnsZerosForEmptyMatrices) {
  const Tensor c = run_op("MatMul", {Tensor(f32, {2, 0}), Tensor(f32, {0, 3})}).at(0);
  EXPECT_EQ(to_doubles(c), std::vector<double>(6, 0.0));
  EXPECT_EQ(run_op("MatMul", {Tensor(f32, {0, 2}), Tensor(f32, {2, 3})}).at(0).shape(),
            Shape({0, 3}));
}

TEST(MatMul, NamesIncompatibleMatrices) {
  expect_error_with(Code::invalid_argument, "Matrix size-incompatible: In[0]: [2,3], In[1]: [2,3]",
                    [] {
                      run_op("MatMul", {Tensor(f32, {2, 3}), Tensor(f32, {2, 3})});
                    });
  expect_error_with(Code::invalid_argument, "must have rank 2, got [3]", [] {
    run_op("MatMul", {Tensor(f32, {3}), Tensor(f32, {3, 2})});
  });
}

}  // namespace
}  // namespace leat
