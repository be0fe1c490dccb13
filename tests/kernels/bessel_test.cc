// The modified Bessel functions against those of the standard library.
#include <gtest/gtest.h>

#include <cmath>

#include "graph/ops.h"
#include "tests/support/run_op.h"

namespace leat {
namespace {

const std::vector<double> places = {0,   1e-300,   1e-5, 0.1,  0.7,  1,  2,  3.9,
                                    7.9, 7.999999, 8,    8.1,  9,    12, 20, 29.5,
                                    100, 350,      600,  -0.3, -7.5, -9, -50};

void expect_like(const char* op, int order, bool scaled, DType dtype, double close) {
  const Tensor x = from_doubles(dtype, {static_cast<int64_t>(places.size())}, places);
  const std::vector<double> rounded = to_doubles(x), y = to_doubles(run_op(op, {x})[0]);
  for (size_t i = 0; i < y.size(); ++i) {
    const double at = std::abs(rounded[i]);
    if (!scaled && dtype == DType::f32 && at > 80) continue;  // too large for a float
    double expected = std::cyl_bessel_i(order, at);
    if (scaled) expected *= std::exp(-at);
    if (order == 1 && rounded[i] < 0) expected = -expected;
    EXPECT_NEAR(y[i], expected, close * std::abs(expected)) << op << " of " << rounded[i];
  }
}

TEST(Bessel, ModifiedOnesAreThoseOfTheStandardLibrary) {
  for (const auto& [dtype, close] : {std::pair{DType::f64, 2e-13}, {DType::f32, 3e-7}}) {
    expect_like("BesselI0", 0, false, dtype, close);
    expect_like("BesselI0e", 0, true, dtype, close);
    expect_like("BesselI1", 1, false, dtype, close);
    expect_like("BesselI1e", 1, true, dtype, close);
  }
}

TEST(Bessel, ModifiedOnesOfInfinity) {
  const Tensor x = from_doubles(DType::f64, {2}, {INFINITY, -INFINITY});
  const auto values = [&](const char* op) { return to_doubles(run_op(op, {x})[0]); };
  EXPECT_EQ(values("BesselI0"), (std::vector<double>{INFINITY, INFINITY}));
  EXPECT_EQ(values("BesselI1"), (std::vector<double>{INFINITY, -INFINITY}));
  EXPECT_EQ(values("BesselI0e"), (std::vector<double>{0, 0}));
}

}  // namespace
}  // namespace leat
