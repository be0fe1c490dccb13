// Numbers at the ends of their types that could lead a kernel out of its memory or into an endless
// loop.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "kernels/examples.h"
#include "tests/support/expect_error.h"
#include "tests/support/run_op.h"

namespace leat {
namespace {

constexpr double infinity = std::numeric_limits<double>::infinity();
constexpr double nan = std::numeric_limits<double>::quiet_NaN();

std::vector<double> histogram(const Tensor& values, const Tensor& range) {
  return to_doubles(run_op("HistogramFixedWidth", {values, range, Tensor::scalar<int32_t>(4)})[0]);
}

TEST(ExtremeNumbers, HistogramCoversAllIntegers) {
  const int32_t least = std::numeric_limits<int32_t>::min(),
                most = std::numeric_limits<int32_t>::max();
  EXPECT_EQ(histogram(Tensor::of<int32_t>({4}, {least, -5, 5, most}),
                      Tensor::of<int32_t>({2}, {least, most})),
            (std::vector<double>{1, 1, 1, 1}));
}

TEST(ExtremeNumbers, HistogramAcceptsInfiniteRanges) {
  for (const auto& [low, high] :
       {std::pair{-infinity, 0.0}, {0.0, infinity}, {-infinity, infinity}}) {
    const auto counts =
        histogram(Tensor::of<double>({3}, {-1, 0, infinity}), Tensor::of<double>({2}, {low, high}));
    EXPECT_EQ(counts[0] + counts[1] + counts[2] + counts[3], 3);
  }
}

TEST(ExtremeNumbers, NthElementSortsNaNsLast) {
  Tensor values(f64, {2, 1'000});
  for (int64_t i = 0; i < values.elements(); ++i)
    values.data<double>()[i] = i % 3 == 0 ? nan : static_cast<double>(i % 1'000);
  const Tensor second = run_op("NthElement", {values, Tensor::scalar<int32_t>(1)})[0];
  EXPECT_EQ(to_doubles(second), (std::vector<double>{2, 1}));  // NaN counts as the largest
}

TEST(ExtremeNumbers, PoissonSaturatesForHugeRates) {
  const AttrMap attrs = {{"seed", 1}, {"seed2", 2}, {"dtype", i32}, {"R", f64}};
  const Tensor drawn =
      run_op("RandomPoissonV2", {Tensor::of<int32_t>({1}, {3}), Tensor::scalar(1e30)}, attrs)[0];
  for (const int32_t x : drawn.span<int32_t>()) EXPECT_EQ(x, std::numeric_limits<int32_t>::max());
}

// Matrices whose squares are infinite, or 0.
TEST(ExtremeNumbers, DecompositionsHandleLargeAndSmallMatrices) {
  const int64_t n = 20;
  for (const double scale : {1e-200, 1.0, 1e200}) {
    Tensor matrix(f64, {n, n});
    for (int64_t i = 0; i < n * n; ++i)
      matrix.data<double>()[i] = scale * std::cos(static_cast<double>(i / n + i % n));  // symmetric
    const Tensor s = run_op("Svd", {matrix}, {{"compute_uv", false}})[0];
    const Tensor e = run_op("SelfAdjointEigV2", {matrix}, {{"compute_v", false}})[0];
    double trace = 0, sum = 0, largest = 0;
    for (int64_t i = 0; i < n; ++i) {
      trace += matrix.data<double>()[i * (n + 1)];
      sum += e.data<double>()[i];
      largest = std::max(largest, std::abs(e.data<double>()[i]));
    }
    EXPECT_NEAR(sum / trace, 1, 1e-9) << scale;
    EXPECT_NEAR(s.data<double>()[0] / largest, 1, 1e-9) << scale;
  }
}

// TensorFlow's client rejects these before any kernel sees them.
TEST(ExtremeNumbers, ApproxTopKRejectsInexactRequests) {
  const auto refuses = [](std::string_view message, AttrMap attrs) {
    attrs.emplace("k", int64_t{2});
    expect_error_with(Code::invalid_argument, std::string(message), [&] {
      run_op("ApproxTopK", {floats({2, 3}, {1, 2, 3, 4, 5, 6})}, attrs);
    });
  };
  refuses("largest entries along the last dimension", {{"reduction_dimension", int64_t{0}}});
  refuses("largest entries along the last dimension", {{"is_max_k", false}});
  refuses("must have last dimension >= k", {{"k", int64_t{4}}});
  for (const float recall : {0.0F, -1.0F, 1.5F, std::numeric_limits<float>::quiet_NaN()})
    refuses("Invalid recall target", {{"recall_target", recall}});
}

TEST(ExtremeNumbers, LinSpaceKeepsItsEndpoints) {
  const auto space = [](float start, float stop, int32_t n) {
    return to_doubles(
        run_op("LinSpace", {Tensor::scalar(start), Tensor::scalar(stop), Tensor::scalar(n)})[0]);
  };
  EXPECT_EQ(space(1, infinity, 2), (std::vector<double>{1, infinity}));
  EXPECT_EQ(space(3e38F, -3e38F, 3), (std::vector<double>{3e38F, -infinity, -3e38F}));
}

TEST(ExtremeNumbers, LaterNaNWinsASegment) {
  for (const char* op : {"UnsortedSegmentMin", "UnsortedSegmentMax"}) {
    const auto segment = [&](std::initializer_list<float> rows) {
      return to_doubles(run_op(op, {floats(rows), ints({0, 0}), Tensor::scalar<int32_t>(1)})[0])[0];
    };
    EXPECT_TRUE(std::isnan(segment({7, static_cast<float>(nan)}))) << op;
    EXPECT_EQ(segment({static_cast<float>(nan), 7}), 7) << op;
  }
}

}  // namespace
}  // namespace leat
