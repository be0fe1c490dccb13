// _MaxPoolReluGrad against the two ops that it is made of: to the bit, signs of zeros included.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <random>

#include "tests/support/run_op.h"

namespace leat {
namespace {

// Numbers with equal ones, zeros of both signs, infinities and NaN among them.
Tensor numbers(DType dtype, const Shape& shape, unsigned seed) {
  constexpr double infinity = std::numeric_limits<double>::infinity();
  const std::vector<double> special = {0.0, -0.0, infinity, -infinity, std::nan(""), 1.0, -2.0};
  std::mt19937 random(seed);
  std::vector<double> values(shape.elements());
  for (double& value : values)
    value = random() % 4 == 0 ? special[random() % special.size()]
                              : static_cast<double>(random() % 2001) / 500 - 2;
  return from_doubles(dtype, shape, values);
}

void expect_same_bits(const Tensor& actual, const Tensor& expected, const std::string& what) {
  const std::vector<double> a = to_doubles(actual), b = to_doubles(expected);
  for (size_t i = 0; i < a.size(); ++i) {
    if (std::isnan(a[i]) && std::isnan(b[i])) continue;
    ASSERT_TRUE(a[i] == b[i] && std::signbit(a[i]) == std::signbit(b[i]))
        << what << ", element " << i << ": " << a[i] << " is not " << b[i];
  }
}

TEST(MaxPoolReluGrad, IsReluGradOfMaxPoolGrad) {
  for (const DType dtype : {f32, f64, DType::bf16, DType::i32}) {
    for (const int64_t size : {1, 2, 3}) {
      for (const char* padding : {"VALID", "SAME"}) {
        for (const int64_t channels : {1, 5, 16, 48, 70}) {
          const std::vector<int64_t> window = {1, size, size, 1};
          const AttrMap attrs = {{"ksize", window}, {"strides", window}, {"padding", padding}};
          const Tensor x = numbers(dtype, {2, 6, 8, channels}, 1);
          const Tensor y = run_op("MaxPool", {x}, attrs)[0], dy = numbers(dtype, y.shape(), 2);
          const Tensor pool = run_op("MaxPoolGrad", {x, y, dy}, attrs)[0];
          expect_same_bits(run_op("_MaxPoolReluGrad", {x, y, dy}, attrs)[0],
                           run_op("ReluGrad", {pool, x})[0],
                           concat(dtype, ", ", size, ", ", padding, ", channels ", channels));
        }
      }
    }
  }
}

}  // namespace
}  // namespace leat
