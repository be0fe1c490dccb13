// Optimizers made of several ops, against their rules in plain C++ and the results of Keras.
#include "frontends/cpp/optimizers/layerwise.h"

#include <array>
#include <cmath>

#include "frontends/cpp/optimizers/gradient_clipping.h"
#include "frontends/cpp/optimizers/optimizers.h"
#include "graph/gradient.h"
#include "tests/frontends/tutorials.h"

namespace leat {
namespace {

using Values = std::array<double, 3>;

// loss = sum(scale · (w - target)²)
constexpr Values target = {1.0, -2.0, 0.5}, scale = {1.0, 0.5, 2.0}, start = {0.3, 0.2, -0.1};

double length(const Values& x) { return std::sqrt(x[0] * x[0] + x[1] * x[1] + x[2] * x[2]); }
Values gradient(const Values& w) {
  Values g;
  for (size_t i = 0; i < 3; ++i) g[i] = 2 * scale[i] * (w[i] - target[i]);
  return g;
}

Tensor tensor(const Values& values) {
  return Tensor::of<double>({3}, std::span<const double>(values));
}

struct Problem {
  Graph g;
  Output w, loss;
  explicit Problem(std::string_view name = "w", const Values& begin = start, bool resource = false)
      : w(variable(g, name, {3}, initializers::constant(tensor(begin)), f64,
                   {.use_resource = resource})),
        loss(sum(constant(g, tensor(scale)) * square(w - constant(g, tensor(target))))) {}

  std::vector<double> after(const Optimizer& optimizer, int steps) {
    Node& train = optimizer.minimize(loss);
    Session session(g);
    session.initialize();
    for (int i = 0; i < steps; ++i) session.run(train);
    return session.run(w).to_vector<double>();
  }
};

void expect_near(const std::vector<double>& got, const Values& expected, double tolerance = 1e-7) {
  EXPECT_THAT(got, testing::Pointwise(testing::DoubleNear(tolerance), expected));
}

// Five steps of keras.optimizers.Nadam(0.05, epsilon=1e-8) and of Lamb(0.05, epsilon=1e-6),
// Keras 3.15.
constexpr Values keras_nadam = {0.48914532490410545, 0.004645275746629131, 0.08750453363762006};
constexpr Values keras_lamb = {0.3543961073350451, 0.14554686996466312, -0.0456189477183871};

TEST(Nadam, FollowsKeras) {
  const Nadam optimizer{0.05, {.momentum_decay = 1}};  // which Keras 3 has fixed
  expect_near(Problem().after(optimizer, 5), keras_nadam);
  expect_near(Problem("w", start, true).after(optimizer, 5), keras_nadam);
}
TEST(Nadam, FollowsDozatsRule) {
  Values w = start, m{}, v{};
  double product = 1;
  const auto momentum = [](int t) { return 0.9 * (1 - 0.5 * std::pow(0.96, t * 0.004)); };
  for (int t = 1; t <= 20; ++t) {
    const Values g = gradient(w);
    product *= momentum(t);
    for (size_t i = 0; i < 3; ++i) {
      m[i] = 0.9 * m[i] + 0.1 * g[i];
      v[i] = 0.999 * v[i] + 0.001 * g[i] * g[i];
      const double mean = momentum(t + 1) * m[i] / (1 - product * momentum(t + 1)) +
                          (1 - momentum(t)) * g[i] / (1 - product);
      w[i] -= 0.05 * mean / (std::sqrt(v[i] / (1 - std::pow(0.999, t))) + 1e-8);
    }
  }
  expect_near(Problem().after(Nadam{0.05}, 20), w, 1e-10);
}
TEST(Nadam, RejectsImpossibleOptions) {
  expect_error_with(Code::invalid_argument, "Nadam", [] { Nadam{0.1, {.beta1 = 1}}; });
  expect_error_with(Code::invalid_argument, "momentum_decay", [] {
    Nadam{0.1, {.momentum_decay = -1}};
  });
}

TEST(Lamb, FollowsKeras) {
  expect_near(Problem().after(Lamb{0.05, {.weight_decay = 0}}, 5), keras_lamb);
  expect_near(Problem("w", start, true).after(Lamb{0.05, {.weight_decay = 0}}, 5), keras_lamb);
}

// The rule of You et al., ICLR 2020, algorithm 2.
Values lamb_rule(Values w, int steps, double rate, double decay, bool follows_length) {
  Values m{}, v{};
  for (int t = 1; t <= steps; ++t) {
    const Values g = gradient(w);
    Values u;
    for (size_t i = 0; i < 3; ++i) {
      m[i] = 0.9 * m[i] + 0.1 * g[i];
      v[i] = 0.999 * v[i] + 0.001 * g[i] * g[i];
      u[i] = m[i] / (1 - std::pow(0.9, t)) / (std::sqrt(v[i] / (1 - std::pow(0.999, t))) + 1e-6);
      if (follows_length) u[i] += decay * w[i];
    }
    double ratio = 1;
    if (follows_length && length(w) > 0 && length(u) > 0) ratio = length(w) / length(u);
    for (size_t i = 0; i < 3; ++i) w[i] -= rate * ratio * u[i];
  }
  return w;
}

TEST(Lamb, DecaysAndExcludes) {
  const Lamb optimizer{0.05, {.weight_decay = 0.3, .exclude = {"bias", "beta"}}};
  expect_near(Problem("kernel").after(optimizer, 6), lamb_rule(start, 6, 0.05, 0.3, true), 1e-10);
  expect_near(Problem("bias").after(optimizer, 6), lamb_rule(start, 6, 0.05, 0.3, false), 1e-10);
}
TEST(Lamb, StartsFromZero) {
  expect_near(Problem("w", {}).after(Lamb{0.05}, 3), lamb_rule({}, 3, 0.05, 0.01, true), 1e-10);
}

// The rule of You, Gitman and Ginsburg, arXiv:1708.03888, algorithm 1.
Values lars_rule(Values w, int steps, double rate, const LarsOptions& options, bool follows) {
  Values m{};
  for (int t = 0; t < steps; ++t) {
    const Values g = gradient(w);
    const double decay = follows ? options.weight_decay : 0;
    double ratio = 1;
    if (follows && length(w) > 0 && length(g) > 0)
      ratio = options.trust_coefficient * length(w) / (length(g) + decay * length(w));
    for (size_t i = 0; i < 3; ++i) {
      m[i] = options.momentum * m[i] + rate * ratio * (g[i] + decay * w[i]);
      w[i] -= m[i];
    }
  }
  return w;
}

TEST(Lars, FollowsItsRule) {
  const LarsOptions options = {
      .momentum = 0.8, .weight_decay = 0.1, .trust_coefficient = 0.05, .exclude = {"bias"}};
  expect_near(Problem("kernel").after(Lars{2, options}, 8), lars_rule(start, 8, 2, options, true),
              1e-10);
  expect_near(Problem("kernel", start, true).after(Lars{2, options}, 8),
              lars_rule(start, 8, 2, options, true), 1e-10);
  const Values excluded = lars_rule(start, 3, 0.1, options, false);
  expect_near(Problem("layer_bias").after(Lars{0.1, options}, 3), excluded, 1e-10);
  expect_near(Problem("zero", {}).after(Lars{0.01}, 1), lars_rule({}, 1, 0.01, {}, true), 1e-10);
}
TEST(Lars, RejectsImpossibleOptions) {
  expect_error_with(Code::invalid_argument, "trust_coefficient must be positive", [] {
    Lars{0.1, {.trust_coefficient = 0}};
  });
  expect_error_with(Code::invalid_argument, "momentum", [] { Lars{0.1, {.momentum = 1}}; });
}

TEST(Layerwise, TrainsRowsAndHalves) {
  Graph g;
  const Output table = variable(g, "table", {4, 2}, initializers::ones);
  const Output half = variable(g, "half", {2}, initializers::ones, f16);
  const Output loss = sum(square(take(table, {1, 1}))) + cast(sum(square(half)), f32);
  Node& lamb = Lamb{0.1}.minimize(loss);
  Node& lars = Lars{1, {.trust_coefficient = 0.1}}.minimize(loss);
  Node& nadam = Nadam{0.1}.minimize(loss);
  Session session(g);
  session.initialize();
  for (Node* train : {&lamb, &lars, &nadam}) {
    const float before = session.run(loss).item<float>();
    session.run(*train);
    EXPECT_LT(session.run(loss).item<float>(), before) << train->name;
  }
}

TEST(Optimizer, AppliesTheResultOfGradients) {
  Problem a;
  variable(a.g, "unused", {2}, initializers::ones);
  const std::vector<Output> variables = trainable_variables(a.g);
  const auto [clipped, norm] = clip_by_global_norm(gradients({a.loss}, variables), 1);
  Node& train = Sgd{0.5}.apply_gradients(clipped, variables);
  Session session(a.g);
  session.initialize();
  session.run(train);
  Values expected = start;
  const Values g = gradient(start);
  for (size_t i = 0; i < 3; ++i) expected[i] -= 0.5 * g[i] / length(g);
  expect_near(session.run(a.w).to_vector<double>(), expected);
  expect_error_with(Code::invalid_argument, "there are 1 gradients for 2 variables",
                    [&, first = clipped[0]] { Sgd{0.5}.apply_gradients({first}, variables); });
}

}  // namespace
}  // namespace leat
