// TopKV2, which sorts integers that stand for numbers of up to 32 bits.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "core/visit_dtype.h"
#include "graph/ops.h"
#include "kernels/types.h"
#include "tests/support/run_op.h"

namespace leat {
namespace {

template <class T>
std::vector<T> extremes() {
  std::vector<T> out;
  for (const double x : {0.0, -0.0, 1.0, -1.0, 2.0, -3.0, 100.0, 7.0, 7.0, -3.0})
    if (std::is_signed_v<ComputeType<T>> || x >= 0) out.push_back(static_cast<T>(x));
  if constexpr (std::is_integral_v<T>) {
    out.insert(out.end(), {std::numeric_limits<T>::max(), std::numeric_limits<T>::min()});
  } else {
    const double infinity = std::numeric_limits<double>::infinity(), nan = std::nan("");
    for (const double x : {infinity, -infinity, nan, -nan}) out.push_back(static_cast<T>(x));
  }
  return out;
}

template <class T>
void check_order() {
  std::vector<T> row;
  for (int repeat = 0; repeat < 20; ++repeat)
    for (const T& x : extremes<T>()) row.push_back(x);
  const auto n = static_cast<int64_t>(row.size());
  std::vector<int64_t> order(n);
  std::iota(order.begin(), order.end(), int64_t{0});
  std::stable_sort(order.begin(), order.end(), [&](int64_t i, int64_t j) {
    const ComputeType<T> x(row[i]), y(row[j]);
    return x != x ? y == y : y < x;  // NaN is the largest
  });
  Tensor two(dtype_of<T>, {2, n});
  for (int64_t i = 0; i < 2 * n; ++i) two.data<T>()[i] = row[i % n];
  for (const int32_t k : {0, 1, 5, static_cast<int32_t>(n / 2), static_cast<int32_t>(n)}) {
    const std::vector<Tensor> top = run_op("TopKV2", {two, Tensor::scalar(k)});
    for (int64_t i = 0; i < 2 * k; ++i) {
      ASSERT_EQ(top[1].data<int32_t>()[i], order[i % k]) << two.dtype() << ", place " << i;
      const ComputeType<T> x(top[0].data<T>()[i]), expected(row[order[i % k]]);
      ASSERT_TRUE(x == expected || (x != x && expected != expected)) << two.dtype() << " " << i;
    }
  }
}

TEST(TopK, OrdersExtremesOfEveryTypeFirstOnesFirst) {
  check_order<float>();
  check_order<double>();
  check_order<half>();
  check_order<bfloat16>();
  check_order<int8_t>();
  check_order<uint8_t>();
  check_order<int16_t>();
  check_order<int32_t>();
  check_order<int64_t>();
  check_order<uint32_t>();
}

}  // namespace
}  // namespace leat
