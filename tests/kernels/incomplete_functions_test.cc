// The incomplete gamma and beta functions of floats end their series and fractions early: they must
// still be those of doubles, rounded.
#include <gtest/gtest.h>

#include <cmath>
#include <functional>

#include "tests/support/run_op.h"

namespace leat {
namespace {

const std::vector<double> parameters = {1e-6, 0.01, 0.3, 1, 1.5, 7, 40, 300, 2e3, 5e4};

// `inputs` are floats.
void expect_rounded(const std::string& op, const std::vector<std::vector<double>>& inputs) {
  std::vector<Tensor> floats, doubles;
  for (const std::vector<double>& values : inputs) {
    const Shape shape{static_cast<int64_t>(values.size())};
    floats.push_back(from_doubles(f32, shape, values));
    doubles.push_back(from_doubles(DType::f64, shape, to_doubles(floats.back())));
  }
  const std::vector<double> y = to_doubles(run_op(op, floats)[0]),
                            expected = to_doubles(run_op(op, doubles)[0]);
  for (size_t i = 0; i < y.size(); ++i) {
    const double one_place = std::ldexp(1.0, -24) * std::max(std::abs(expected[i]), 1e-37);
    EXPECT_NEAR(y[i], expected[i], 1.01 * one_place)
        << op << " of " << inputs[0][i] << " and " << inputs[1][i];
  }
}

TEST(IncompleteFunctions, OfFloatsAreThoseOfDoublesRounded) {
  std::vector<double> a, x;
  for (const double parameter : parameters) {
    for (const double times : {1e-3, 0.1, 0.7, 0.97, 1.0, 1.03, 1.5, 4.0, 30.0}) {
      a.push_back(parameter);
      x.push_back(parameter * times);
    }
  }
  expect_rounded("Igamma", {a, x});
  expect_rounded("Igammac", {a, x});

  std::vector<double> b, at;
  a.clear();
  for (const double first : parameters) {
    for (const double second : parameters) {
      const double middle = first / (first + second);
      for (const double place : {1e-6, 0.2, 0.9, 0.9 * middle, middle, 0.1 + 0.9 * middle}) {
        a.push_back(first);
        b.push_back(second);
        at.push_back(place);
      }
    }
  }
  expect_rounded("Betainc", {a, b, at});
}

}  // namespace
}  // namespace leat
