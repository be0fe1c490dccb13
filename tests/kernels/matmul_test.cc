// MatMul has several implementations, chosen by extents and types: each against the sum written
// out.
#include <gtest/gtest.h>

#include <cmath>

#include "kernels/linear_algebra/bfloat16_matmul.h"
#include "kernels/linear_algebra/matmul.h"
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

// Few rows or columns: every way of reading the large operand, with ends that fill no vector.
TEST(MatMul, EqualsTheSumOfProductsForFewRowsAndColumns) {
  for (const auto& [few, many, k] : std::vector<std::array<int64_t, 3>>{{1, 33, 270},
                                                                        {1, 128, 1100},
                                                                        {1, 256, 300},
                                                                        {1, 301, 500},
                                                                        {1, 1100, 130},
                                                                        {2, 4200, 9},
                                                                        {3, 20, 31},
                                                                        {4, 17, 12},
                                                                        {5, 33, 300},
                                                                        {8, 100, 37},
                                                                        {13, 70, 260},
                                                                        {16, 16, 16},
                                                                        {16, 49, 257},
                                                                        {16, 600, 20},
                                                                        {17, 40, 50}}) {
    expect_product(f32, few, many, k, 1);
    expect_product(f32, many, few, k, 1);
  }
}

// Large enough that some transpositions compute the transposed product first.
TEST(MatMul, EqualsTheSumOfProductsWhereTheTransposedOneIsFaster) {
  for (const int threads : {1, 3}) {
    expect_product(f32, 41, 423, 260, threads);
    expect_product(f32, 1605, 21, 130, threads);
    expect_product(f32, 66, 130, 1025, threads);
    expect_product(f32, 50, 1024, 380, threads);  // a is turned first
    expect_product(f32, 49, 2048, 761, threads);
    expect_product(f32, 50, 300, 1024, threads);  // b is, on AMD's processors
  }
}

// Equal products are equal to the last bit, however threads share the work.
TEST(MatMul, IsTheSameForAnyNumberOfThreads) {
  for (const auto& [m, n, k] : std::vector<std::array<int64_t, 3>>{{6, 4001, 700},
                                                                   {1, 256, 5000},
                                                                   {1, 1403, 600},
                                                                   {50, 300, 1024},
                                                                   {2003, 3, 900},
                                                                   {2003, 13, 500},
                                                                   {16, 1500, 255},
                                                                   {41, 900, 260},
                                                                   {300, 310, 290}}) {
    for (const bool ta : {false, true}) {
      for (const bool tb : {false, true}) {
        const auto fractions = [](const Shape& shape) {
          Tensor out(f32, shape);
          for (int64_t i = 0; i < shape.elements(); ++i)
            out.data<float>()[i] = static_cast<float>(i * 37 % 1009 - 500) / 997.0f;
          return out;
        };
        const std::vector<Tensor> operands = {fractions(ta ? Shape{k, m} : Shape{m, k}),
                                              fractions(tb ? Shape{n, k} : Shape{k, n})};
        const AttrMap attrs = {{"transpose_a", ta}, {"transpose_b", tb}};
        const Tensor one = run_op("MatMul", operands, attrs, test_cpu(1)).at(0);
        const Tensor three = run_op("MatMul", operands, attrs, test_cpu(3)).at(0);
        EXPECT_EQ(to_doubles(one), to_doubles(three))
            << m << "x" << n << "x" << k << " transposed " << ta << tb;
      }
    }
  }
}

void expect_sum(DType dtype, int64_t m, int64_t n, int64_t k) {
  for (const bool ta : {false, true}) {
    for (const bool tb : {false, true}) {
      const Tensor a = numbers(dtype, ta ? Shape{k, m} : Shape{m, k}, 5);
      const Tensor b = numbers(dtype, tb ? Shape{n, k} : Shape{k, n}, 7);
      Tensor sum = numbers(dtype, {m, n}, 3);
      std::vector<double> expected = product(a, b, ta, tb);
      const std::vector<double> before = to_doubles(sum);
      for (size_t i = 0; i < before.size(); ++i) expected[i] += before[i];
      const BoundKernel kernel =
          bind_matmul(dtype, {m, n, k, ta, tb, /*conjugates=*/false, /*adds=*/true});
      std::vector<float> workspace(kernel.workspace_bytes / sizeof(float) + 1);
      void* inputs[] = {a.raw(), b.raw()};
      void* outputs[] = {sum.raw()};
      Stream stream;
      if (kernel.function != nullptr)
        kernel.function(kernel.bound.get(), {inputs, outputs, workspace.data(), &stream});
      const std::vector<double> actual = to_doubles(sum);
      const double tolerance = dtype == bf16 ? 1e-2 : dtype == f16 ? 1e-3 : 1e-6;
      for (size_t i = 0; i < actual.size(); ++i) {
        ASSERT_NEAR(actual[i], expected[i], tolerance * std::max(1.0, std::abs(expected[i])))
            << dtype << " " << m << "x" << n << "x" << k << " transposed " << ta << tb
            << " element " << i;
      }
    }
  }
}

TEST(MatMul, AddsToWhatTheOutputHolds) {
  for (const DType dtype : {f32, f64, f16, bf16, i32, i64}) {
    for (const auto& [m, n, k] : std::vector<std::array<int64_t, 3>>{{3, 4, 5},
                                                                     {1, 150, 19},
                                                                     {150, 1, 9},
                                                                     {37, 35, 1},
                                                                     {37, 35, 0},
                                                                     {37, 5, 40},
                                                                     {7, 50, 40},
                                                                     {3, 33, 300},
                                                                     {20, 70, 33}}) {
      expect_sum(dtype, m, n, k);
    }
  }
  expect_sum(f32, 41, 423, 260);  // computes the transposed product first
  expect_sum(f32, 1605, 21, 130);
  expect_sum(f32, 50, 1024, 380);
  expect_sum(f32, 50, 300, 1024);
  expect_sum(f32, 1, 256, 700);
  expect_sum(f32, 1, 1030, 140);
}

// A node's constant weights, laid out anew once, for batches of several sizes.
TEST(MatMul, KeepsConstantWeightsForAllSizesOfABatch) {
  for (const bool tb : {false, true}) {
    const int64_t n = 170, k = 210;
    const Tensor b = numbers(bf16, tb ? Shape{n, k} : Shape{k, n}, 7);
    std::shared_ptr<void> state;
    for (const int64_t m : {5, 700, 33, 5}) {
      const Tensor a = numbers(bf16, {m, k}, 5);
      // Without bfloat16 instructions, the weights are read where they are.
      const auto packed = bind_bfloat16_matmul({m, n, k, false, tb}, b, state);
      const BoundKernel kernel = packed ? *packed : bind_matmul(bf16, {m, n, k, false, tb});
      Tensor out(bf16, {m, n});
      std::vector<float> workspace(kernel.workspace_bytes / sizeof(float) + 1);
      void *inputs[] = {a.raw(), packed ? nullptr : b.raw()}, *outputs[] = {out.raw()};
      Stream stream;
      kernel.function(kernel.bound.get(), {inputs, outputs, workspace.data(), &stream});
      const std::vector<double> actual = to_doubles(out), expected = product(a, b, false, tb);
      for (size_t i = 0; i < actual.size(); ++i)
        ASSERT_NEAR(actual[i], expected[i], 1e-2 * std::max(1.0, std::abs(expected[i]))) << m;
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
