// Optimizers, against the update rules in plain C++, on a quadratic in two variables.
#include "frontends/cpp/optimizers/optimizers.h"

#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <concepts>

#include "frontends/cpp/session.h"
#include "tests/support/expect_error.h"

namespace leat {
namespace {

using Values = std::array<double, 3>;

// loss = sum(scale · (w - target)²)
constexpr Values target = {1.0, -2.0, 0.5}, scale = {1.0, 0.5, 2.0}, start = {0.3, 0.2, -0.1};

Values gradient(const Values& w) {
  Values out;
  for (size_t i = 0; i < 3; ++i) out[i] = 2 * scale[i] * (w[i] - target[i]);
  return out;
}

Tensor tensor(const Values& values) {
  return Tensor::of<double>({3}, std::span<const double>(values));
}

using Rule = std::function<Values(Values, int step)>;

void expect_follows(const std::function<std::unique_ptr<Optimizer>(Output global_step)>& make,
                    const Rule& rule) {
  Graph graph;
  const Output w = variable(graph, "w", {3}, initializers::constant(tensor(start)), f64);
  const Output loss =
      sum(constant(graph, tensor(scale)) * square(w - constant(graph, tensor(target))));
  const Output step =
      variable(graph, "global_step", {}, initializers::zeros(), i64, {.trainable = false});
  Node& train = make(step)->minimize(loss, {.global_step = step});
  Node& init = initialize_variables(graph);
  Session session(graph);
  session.run({init});
  Values expected = start;
  for (int i = 1; i <= 20; ++i) {
    session.run({train});
    expected = rule(expected, i);
    const auto [value, count] = session.run({}, fetch(w, step));
    EXPECT_EQ(count.item<int64_t>(), i);
    for (size_t k = 0; k < 3; ++k)
      EXPECT_NEAR(value.data<double>()[k], expected[k], 1e-12) << "step " << i << ", element " << k;
  }
}

template <std::derived_from<Optimizer> T>
void expect_follows(const T& optimizer, const Rule& rule) {
  expect_follows([&](Output) { return std::make_unique<T>(optimizer); }, rule);
}

TEST(Sgd, FollowsItsRule) {
  expect_follows(Sgd(0.1), [](Values w, int) {
    const Values g = gradient(w);
    for (size_t i = 0; i < 3; ++i) w[i] -= 0.1 * g[i];
    return w;
  });
}

void expect_momentum(bool use_nesterov) {
  Values m{};
  expect_follows(Momentum(0.05, {.nesterov = use_nesterov}), [&](Values w, int) {
    const Values g = gradient(w);
    for (size_t i = 0; i < 3; ++i) {
      m[i] = 0.9 * m[i] + g[i];
      w[i] -= 0.05 * (use_nesterov ? g[i] + 0.9 * m[i] : m[i]);
    }
    return w;
  });
}
TEST(Momentum, FollowsItsRule) { expect_momentum(false); }
TEST(Momentum, FollowsNesterovsRule) { expect_momentum(true); }

TEST(Adagrad, FollowsItsRule) {
  Values a = {0.1, 0.1, 0.1};
  expect_follows(Adagrad(0.3), [&](Values w, int) {
    const Values g = gradient(w);
    for (size_t i = 0; i < 3; ++i) {
      a[i] += g[i] * g[i];
      w[i] -= 0.3 * g[i] / std::sqrt(a[i]);
    }
    return w;
  });
}

void expect_rms_prop(bool is_centered) {
  Values s = {1, 1, 1}, mean{}, m{};
  const RmsProp optimizer(0.05, {.decay = 0.8, .momentum = 0.5, .centered = is_centered});
  expect_follows(optimizer, [&](Values w, int) {
    const Values g = gradient(w);
    for (size_t i = 0; i < 3; ++i) {
      s[i] = 0.8 * s[i] + 0.2 * g[i] * g[i];
      mean[i] = 0.8 * mean[i] + 0.2 * g[i];
      const double spread = is_centered ? s[i] - mean[i] * mean[i] : s[i];
      m[i] = 0.5 * m[i] + 0.05 * g[i] / std::sqrt(spread + 1e-10);
      w[i] -= m[i];
    }
    return w;
  });
}
TEST(RmsProp, FollowsItsRule) { expect_rms_prop(false); }
TEST(RmsProp, FollowsItsRuleCentered) { expect_rms_prop(true); }

TEST(Adam, FollowsItsRule) {
  Values m{}, v{};
  // TensorFlow's op takes float beta powers and epsilon only as constants of the variable's dtype.
  expect_follows(Adam(0.02), [&](Values w, int step) {
    const Values g = gradient(w);
    const double rate = 0.02 * std::sqrt(1 - std::pow(0.999, step)) / (1 - std::pow(0.9, step));
    for (size_t i = 0; i < 3; ++i) {
      m[i] += (g[i] - m[i]) * (1 - 0.9);
      v[i] += (g[i] * g[i] - v[i]) * (1 - 0.999);
      w[i] -= rate * m[i] / (std::sqrt(v[i]) + 1e-8);
    }
    return w;
  });
}

TEST(AdamW, FollowsItsRule) {
  Values m{}, v{};
  const AdamW optimizer(0.02, {.weight_decay = 0.3, .beta1 = 0.8, .beta2 = 0.9, .epsilon = 1e-3});
  expect_follows(optimizer, [&](Values w, int step) {
    const Values g = gradient(w);
    const double rate = 0.02 * std::sqrt(1 - std::pow(0.9, step)) / (1 - std::pow(0.8, step));
    for (size_t i = 0; i < 3; ++i) {
      m[i] = 0.8 * m[i] + 0.2 * g[i];
      v[i] = 0.9 * v[i] + 0.1 * g[i] * g[i];
      w[i] = w[i] * (1 - 0.02 * 0.3) - rate * m[i] / (std::sqrt(v[i]) + 1e-3);
    }
    return w;
  });
}

TEST(Adamax, FollowsItsRule) {
  Values m{}, u{};
  expect_follows(Adamax(0.02), [&](Values w, int step) {
    const Values g = gradient(w);
    for (size_t i = 0; i < 3; ++i) {
      m[i] = 0.9 * m[i] + (1 - 0.9) * g[i];
      u[i] = std::max(0.999 * u[i], std::abs(g[i]));
      w[i] -= 0.02 / (1 - std::pow(0.9, step)) * m[i] / (u[i] + 1e-8);
    }
    return w;
  });
}

double sign(double x) { return x > 0 ? 1 : x < 0 ? -1 : 0; }

// What the penalties l1 and l2 leave of w at the rate r.
double shrunk(double w, double r, double l1, double l2) {
  return sign(w) * std::max(std::abs(w) - r * l1, 0.0) / (1 + r * l2);
}

TEST(AdagradDA, FollowsItsRule) {
  Values s{}, a = {0.1, 0.1, 0.1};
  const auto make = [](Output step) {
    return std::make_unique<AdagradDA>(0.3, step, AdagradDAOptions{.l1 = 0.05, .l2 = 0.2});
  };
  expect_follows(make, [&](Values w, int step) {
    const Values g = gradient(w);
    for (size_t i = 0; i < 3; ++i) {
      s[i] += g[i];
      a[i] += g[i] * g[i];
      w[i] = -0.3 * sign(s[i]) * std::max(std::abs(s[i]) - 0.05 * step, 0.0) /
             (std::sqrt(a[i]) + 0.2 * step * 0.3);
    }
    return w;
  });
}

TEST(Adadelta, FollowsItsRule) {
  Values a{}, u{};
  expect_follows(Adadelta(1, {.rho = 0.8, .epsilon = 1e-3}), [&](Values w, int) {
    const Values g = gradient(w);
    for (size_t i = 0; i < 3; ++i) {
      a[i] = 0.8 * a[i] + 0.2 * g[i] * g[i];
      const double d = g[i] * std::sqrt(u[i] + 1e-3) / std::sqrt(a[i] + 1e-3);
      u[i] = 0.8 * u[i] + 0.2 * d * d;
      w[i] -= d;
    }
    return w;
  });
}

void expect_ftrl(double power, double shrinkage) {
  Values a = {0.2, 0.2, 0.2}, z{};
  const Ftrl optimizer(0.3, {.learning_rate_power = power,
                             .initial_accumulator_value = 0.2,
                             .l1 = 0.05,
                             .l2 = 0.1,
                             .l2_shrinkage = shrinkage});
  expect_follows(optimizer, [&](Values w, int) {
    const Values g = gradient(w);
    for (size_t i = 0; i < 3; ++i) {
      const double b = a[i] + g[i] * g[i];
      z[i] +=
          g[i] + 2 * shrinkage * w[i] - (std::pow(b, -power) - std::pow(a[i], -power)) / 0.3 * w[i];
      a[i] = b;
      w[i] = std::abs(z[i]) > 0.05
                 ? (sign(z[i]) * 0.05 - z[i]) / (std::pow(b, -power) / 0.3 + 2 * 0.1)
                 : 0;
    }
    return w;
  });
}
TEST(Ftrl, FollowsItsRule) { expect_ftrl(-0.5, 0); }
TEST(Ftrl, FollowsItsRuleWithAnotherPower) { expect_ftrl(-0.75, 0); }
TEST(Ftrl, FollowsItsRuleWithShrinkage) { expect_ftrl(-0.5, 0.1); }

TEST(ProximalGradientDescent, FollowsItsRule) {
  expect_follows(ProximalGradientDescent(0.1, {.l1 = 0.2, .l2 = 0.3}), [](Values w, int) {
    const Values g = gradient(w);
    for (size_t i = 0; i < 3; ++i) w[i] = shrunk(w[i] - 0.1 * g[i], 0.1, 0.2, 0.3);
    return w;
  });
}

TEST(ProximalAdagrad, FollowsItsRule) {
  Values a = {0.1, 0.1, 0.1};
  expect_follows(ProximalAdagrad(0.3, {.l1 = 0.2, .l2 = 0.3}), [&](Values w, int) {
    const Values g = gradient(w);
    for (size_t i = 0; i < 3; ++i) {
      a[i] += g[i] * g[i];
      const double rate = 0.3 / std::sqrt(a[i]);
      w[i] = shrunk(w[i] - rate * g[i], rate, 0.2, 0.3);
    }
    return w;
  });
}

void expect_sign_rule(const std::function<std::unique_ptr<Optimizer>(Output)>& make,
                      const std::function<double(double agreement)>& factor) {
  Values m{};
  expect_follows(make, [&](Values w, int) {
    const Values g = gradient(w);
    for (size_t i = 0; i < 3; ++i) {
      m[i] = 0.8 * m[i] + 0.2 * g[i];
      w[i] -= 0.05 * factor(0.5 * sign(g[i]) * sign(m[i])) * g[i];
    }
    return w;
  });
}
TEST(AddSign, FollowsItsRule) {
  const auto make = [](Output) {
    return std::make_unique<AddSign>(0.05,
                                     AddSignOptions{.alpha = 2, .beta = 0.8, .sign_decay = 0.5});
  };
  expect_sign_rule(make, [](double agreement) { return 2 + agreement; });
}
TEST(PowerSign, FollowsItsRule) {
  const auto make = [](Output) {
    return std::make_unique<PowerSign>(0.05,
                                       PowerSignOptions{.base = 3, .beta = 0.8, .sign_decay = 0.5});
  };
  expect_sign_rule(make, [](double agreement) { return std::pow(3, agreement); });
}

TEST(Optimizer, TrainsOnlyTheGivenVariables) {
  Graph graph;
  const Output a = variable(graph, "a", {}, initializers::ones()),
               b = variable(graph, "b", {}, initializers::ones());
  Node& train = Sgd(0.25).minimize(square(a) + square(b), {.variables = {b}});
  Session session(graph);
  session.run({initialize_variables(graph)});
  session.run({train});
  const auto [kept, trained] = session.run({}, fetch(a, b));
  EXPECT_EQ(kept.item<float>(), 1);
  EXPECT_EQ(trained.item<float>(), 0.5F);
}

TEST(Optimizer, RejectsATrainedVariableAsGlobalStep) {
  Graph graph;
  const Output a = variable(graph, "a", 1.0F);
  expect_error_with(Code::invalid_argument,
                    "must be an integer variable, got 'a:0', which is float; pass the "
                    "variables to train as .variables",
                    [&] { Sgd(0.1).minimize(square(a), {a}); });
}

TEST(Optimizer, NamesOptionsOutOfRange) {
  const auto expect = [](const std::string& text, const std::function<void()>& make) {
    expect_error_with(Code::invalid_argument, text, make);
  };
  expect("optimizers_test.cc:", [] { Adam(0.1, {.beta1 = 1}); });
  expect("): beta1 must be in [0, 1), got 1", [] { Adam(0.1, {.beta1 = 1}); });
  expect("): beta2 must be in [0, 1), got -0.5", [] { Adamax(0.1, {.beta2 = -0.5}); });
  expect("): weight_decay must be finite and not negative, got -1",
         [] { AdamW(0.1, {.weight_decay = -1}); });
  expect("): momentum must be in [0, 1), got nan", [] { Momentum(0.1, {.momentum = NAN}); });
  expect("): initial_accumulator_value must be finite and not negative, got -0.1",
         [] { Adagrad(0.1, {.initial_accumulator_value = -0.1}); });
  expect("): rho must be in [0, 1), got 2", [] { Adadelta(0.1, {.rho = 2}); });
  expect("): epsilon must be finite and not negative, got inf",
         [] { RmsProp(0.1, {.epsilon = INFINITY}); });
  expect("): learning_rate_power must be finite and not positive, got 0.5",
         [] { Ftrl(0.1, {.learning_rate_power = 0.5}); });
  expect("): initial_accumulator_value must be positive, got 0",
         [] { ProximalAdagrad(0.1, {.initial_accumulator_value = 0}); });
  expect("): base must be finite and positive, got 0", [] { PowerSign(0.1, {.base = 0}); });
  expect("): global_step must be the int32 or int64 variable that counts updates, got none",
         [] { AdagradDA(0.1, {}); });
  expect("must be finite and not negative, got -0.1", [] { Sgd(-0.1); });
}

TEST(Optimizer, NamesAndPlacesSlotsAsTensorFlowDoes) {
  Graph graph;
  Output w;
  {
    const DeviceScope on(graph, "/job:ps/task:1");
    const NameScope scope(graph, "layer");
    w = variable(graph, "w", {2});
  }
  const Output loss = sum(square(w));
  Adam().minimize(loss);
  for (const char* name : {"layer/w/Adam", "layer/w/Adam_1"}) {
    const Node* slot = graph.find(name);
    ASSERT_NE(slot, nullptr) << name;
    EXPECT_EQ(slot->attr<std::vector<std::string>>("_class"),
              std::vector<std::string>{"loc:@layer/w"});
    EXPECT_EQ(slot->requested_device, DeviceName::parse("/job:ps/task:1"));
  }
  EXPECT_NE(graph.find("beta1_power"), nullptr);
  EXPECT_EQ(graph.collection("trainable_variables").size(), 1U);
  EXPECT_EQ(graph.collection("variables").size(), 5U);
}

TEST(Optimizer, ReportsWhyThereIsNothingToTrain) {
  Graph graph;
  const Output loss = constant(graph, Tensor::scalar(1.0F));
  try {
    Sgd(0.1).minimize(loss);
    FAIL();
  } catch (const Error& error) {
    EXPECT_NE(error.message().find("optimizers_test.cc:"), std::string::npos) << error.message();
    EXPECT_NE(error.message().find(": there is nothing to train: the graph has no trainable "
                                   "variables; make them with variable()"),
              std::string::npos);
  }
  variable(graph, "w", {2});
  try {
    Sgd(0.1).minimize(loss);
    FAIL();
  } catch (const Error& error) {
    EXPECT_TRUE(error.message().starts_with(concat("no variable has a gradient (", __FILE__, ":",
                                                   __LINE__ - 4, "): the loss does not")))
        << error.message();
  }
}

TEST(Optimizer, RejectsTransformsThatLeaveNoGradient) {
  Graph graph;
  const Output w = variable(graph, "w", {2}, initializers::ones());
  const Output loss = sum(square(w));
  using Pairs = std::vector<GradientAndVariable>;
  for (const Pairs& left : {Pairs(), Pairs{{Output{}, w}}}) {
    Sgd optimizer(0.1);
    optimizer.set_gradient_transform([&](Pairs) { return left; });
    EXPECT_THROW(optimizer.minimize(loss), Error);
  }
}

TEST(Adam, TrainsVariablesOfSeveralTypes) {
  Graph graph;
  const Output a = variable(graph, "a", {}, initializers::ones(), f64);
  const Output b = variable(graph, "b", {}, initializers::ones());
  Node& train = Adam(0.1).minimize(square(a) + cast(square(b), f64));
  Node& init = initialize_variables(graph);
  Session session(graph);
  session.run({init});
  for (int i = 0; i < 3; ++i) session.run({train});
  const auto [wide, narrow] = session.run({}, fetch(a, b));
  EXPECT_LT(wide.item<double>(), 0.8);
  EXPECT_NEAR(wide.item<double>(), narrow.item<float>(), 1e-5);
}

TEST(Optimizer, RejectsAnUnsetRate) { EXPECT_THROW(Sgd{Output{}}, Error); }

}  // namespace
}  // namespace leat
