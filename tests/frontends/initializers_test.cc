// Initial values of variables: moments against the formulas, orthogonality, fans.
#include "frontends/cpp/initializers.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <numeric>

#include "frontends/cpp/session.h"
#include "frontends/cpp/strategies/parts/partitioned_variables.h"
#include "frontends/cpp/variables.h"
#include "tests/support/expect_error.h"

namespace leat {
namespace {

template <class T = float>
std::vector<double> drawn(const Shape& shape, const Initializer& initial, DType dtype = f32) {
  Graph g;
  const Output v = variable(g, "v", shape, initial, dtype);
  Node& init = initialize_variables(g);
  Session session(g);
  session.run({init});
  const Tensor value = session.run({}, {v})[0];
  EXPECT_EQ(value.shape(), shape);
  std::vector<double> out;
  for (const T x : value.span<T>()) out.push_back(static_cast<double>(x));
  return out;
}

struct Moments {
  double mean = 0, variance = 0, most = 0;
};
Moments moments(const std::vector<double>& x) {
  Moments out;
  const auto n = static_cast<double>(x.size());
  for (const double value : x) {
    out.mean += value / n;
    out.most = std::max(out.most, std::abs(value));
  }
  for (const double value : x) out.variance += (value - out.mean) * (value - out.mean) / n;
  return out;
}

// Checks the variance, that nothing is further away than `most`, and that not all values are far
// below it.
void expect_moments(const char* name, const Initializer& initial, const Shape& shape,
                    double variance, double most) {
  SCOPED_TRACE(name);
  const Moments m = moments(drawn(shape, initial));
  const auto n = static_cast<double>(shape.elements());
  EXPECT_NEAR(m.mean, 0, 5 * std::sqrt(variance / n));
  EXPECT_NEAR(m.variance / variance, 1, 0.02);
  EXPECT_LE(m.most, most * (1 + 1e-6));
  EXPECT_GE(m.most, most * 0.98);
}

// The standard normal distribution truncated at 2 has the variance 1 - 4 phi(2) / (2 Phi(2) - 1).
double cut_at_two() {
  const double phi = std::exp(-2.0) / std::sqrt(2 * M_PI), within = std::erf(std::sqrt(2.0));
  return std::sqrt(1 - 4 * phi / within);
}

TEST(Initializers, HaveTheVarianceOfTheirFans) {
  const Shape kernel{300, 200}, conv{3, 5, 40, 100};  // fans 300, 200 and 15 * 40, 15 * 100
  const double kept = cut_at_two();
  const auto uniform = [&](const char* name, const Initializer& i, const Shape& s, double var) {
    expect_moments(name, i, s, var, std::sqrt(3 * var));
  };
  const auto truncated = [&](const char* name, const Initializer& i, const Shape& s, double var) {
    expect_moments(name, i, s, var, 2 * std::sqrt(var) / kept);
  };
  uniform("glorot_uniform", initializers::glorot_uniform({.seed = 1}), kernel, 2. / 500);
  truncated("glorot_normal", initializers::glorot_normal({.seed = 2}), kernel, 2. / 500);
  uniform("he_uniform", initializers::he_uniform({.seed = 3}), kernel, 2. / 300);
  truncated("he_normal", initializers::he_normal({.seed = 4}), kernel, 2. / 300);
  uniform("lecun_uniform", initializers::lecun_uniform({.seed = 5}), kernel, 1. / 300);
  truncated("lecun_normal", initializers::lecun_normal({.seed = 6}), kernel, 1. / 300);
  truncated("he_normal of a convolution", initializers::he_normal({.seed = 7}), conv, 2. / 600);
  uniform("glorot_uniform of a convolution", initializers::glorot_uniform({.seed = 8}), conv,
          2. / 2100);
  uniform("fan out",
          initializers::variance_scaling({.scale = 3,
                                          .fan = initializers::Fan::out,
                                          .distribution = initializers::Distribution::uniform,
                                          .seed = 9}),
          kernel, 3. / 200);
  expect_moments("truncated_normal", initializers::truncated_normal(0, 0.5, 10), kernel,
                 0.25 * kept * kept, 1);
}

TEST(Initializers, NormalIsNotTruncated) {
  const auto normal = initializers::variance_scaling(
      {.scale = 2, .distribution = initializers::Distribution::normal, .seed = 1});
  const Moments m = moments(drawn({200, 300}, normal));
  EXPECT_NEAR(m.variance, 2. / 200, 2. / 200 * 0.02);
  EXPECT_GT(m.most, 3.5 * std::sqrt(2. / 200));
  EXPECT_NEAR(moments(drawn({200, 300}, initializers::random_normal(0, 3, 2))).variance, 9, 0.2);
}

TEST(Initializers, VectorsUseTheirLengthAsFans) {
  expect_moments("vector", initializers::lecun_uniform({.seed = 1}), {40'000}, 1. / 40'000,
                 std::sqrt(3. / 40'000));
}

// The product of the matrix with its transpose, on the side where it has fewer rows.
template <class T = float>
void expect_orthogonal(const Shape& shape, double gain, double tolerance, DType dtype = f32) {
  SCOPED_TRACE(concat(shape, " ", dtype));
  const std::vector<double> q = drawn<T>(shape, initializers::orthogonal(gain, 11), dtype);
  const int64_t columns = shape[shape.rank() - 1], rows = shape.elements() / columns;
  const auto at = [&](int64_t r, int64_t c) { return q[static_cast<size_t>(r * columns + c)]; };
  const bool is_tall = rows >= columns;
  const int64_t few = std::min(rows, columns), many = std::max(rows, columns);
  for (int64_t i = 0; i < few; ++i) {
    for (int64_t j = 0; j < few; ++j) {
      double product = 0;
      for (int64_t k = 0; k < many; ++k)
        product += is_tall ? at(k, i) * at(k, j) : at(i, k) * at(j, k);
      EXPECT_NEAR(product, i == j ? gain * gain : 0, tolerance) << i << " " << j;
    }
  }
}

TEST(Initializers, OrthogonalHasOrthonormalRowsOrColumns) {
  expect_orthogonal({8, 8}, 1, 1e-5);
  expect_orthogonal({12, 5}, 1, 1e-5);
  expect_orthogonal({5, 12}, 2, 1e-4);
  expect_orthogonal({3, 3, 2, 7}, 1, 1e-5);
  expect_orthogonal<double>({9, 4}, 1, 1e-12, f64);
  expect_orthogonal<bfloat16>({9, 4}, 1, 0.05, bf16);
}

// The diagonal has both signs: Q alone, as QR decompositions return it, would have one.
TEST(Initializers, OrthogonalIsDrawnUniformly) {
  double mean = 0;
  int negative = 0;
  constexpr int draws = 200;
  for (int seed = 1; seed <= draws; ++seed) {
    const double first = drawn({2, 2}, initializers::orthogonal(1, seed))[0];
    mean += first / draws;
    negative += first < 0 ? 1 : 0;
  }
  EXPECT_NEAR(mean, 0, 4 * std::sqrt(0.5 / draws));
  EXPECT_NEAR(negative, draws / 2, 30);
}

TEST(Initializers, PartsAreSlicesOfTheWhole) {
  const auto whole_and_parts = [](const Initializer& initial) {
    Graph g;
    const auto parts = partitioned_variable(g, "p", {6, 4}, partitioners::fixed_size(3), initial);
    const Output joined = parts.value();
    Node& init = initialize_variables(g);
    Session session(g);
    session.run({init});
    const Tensor value = session.run({}, {joined})[0];
    return std::vector<double>(value.span<float>().begin(), value.span<float>().end());
  };
  EXPECT_EQ(whole_and_parts(initializers::orthogonal(1, 5)),
            drawn({6, 4}, initializers::orthogonal(1, 5)));
  EXPECT_EQ(whole_and_parts(initializers::identity(2)), drawn({6, 4}, initializers::identity(2)));
}

TEST(Initializers, IdentityHasADiagonal) {
  EXPECT_THAT(drawn({2, 3}, initializers::identity(2.5)),
              testing::ElementsAre(2.5, 0, 0, 0, 2.5, 0));
}

TEST(Initializers, ReportMistakes) {
  Graph g;
  const auto expect = [&](std::string_view part, const Shape& shape, const Initializer& initial) {
    expect_error_with(Code::invalid_argument, part, [&] { variable(g, "v", shape, initial); });
    expect_error_with(Code::invalid_argument,
                      "initializers_test.cc:", [&] { variable(g, "v", shape, initial); });
  };
  expect("orthogonal needs a shape of rank 2 or more", {3}, initializers::orthogonal());
  expect("identity needs a matrix", {3}, initializers::identity());
  expect_error_with(Code::invalid_argument, "floating-point", [&] {
    variable(g, "v", {2, 2}, initializers::orthogonal(), i32);
  });
  expect_error_with(Code::invalid_argument,
                    "initializers_test.cc:", [] { initializers::variance_scaling({.scale = 0}); });
  expect_error_with(Code::invalid_argument, "needs a seed", [&] {
    partitioned_variable(g, "p", {6, 4}, partitioners::fixed_size(3), initializers::orthogonal());
  });
}

TEST(Initializers, TwoNumbersAreMeanAndDeviation) {
  const Moments normal = moments(drawn({300, 300}, initializers::random_normal(5, 0.5)));
  EXPECT_NEAR(normal.mean, 5, 0.02);
  EXPECT_NEAR(normal.variance, 0.25, 0.02);
  const Moments truncated = moments(drawn({300, 300}, initializers::truncated_normal(0, 2)));
  EXPECT_NEAR(truncated.mean, 0, 0.05);
  EXPECT_NEAR(truncated.variance, 4 * 0.8796 * 0.8796, 0.1);
}

}  // namespace
}  // namespace leat
