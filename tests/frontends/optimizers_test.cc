// Optimizers against the update rules written as straight C++, on a quadratic in two variables.
#include "frontends/cpp/optimizers.h"

#include <gtest/gtest.h>

#include <array>
#include <cmath>

#include "frontends/cpp/session.h"

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

void expect_follows(const Optimizer& optimizer,
                    const std::function<Values(Values, int step)>& rule) {
  Graph graph;
  const Output w = variable(graph, "w", {3}, initializers::constant(tensor(start)), f64);
  const Output loss =
      sum(constant(graph, tensor(scale)) * square(w - constant(graph, tensor(target))));
  const Output step =
      variable(graph, "global_step", {}, initializers::zeros(), i64, {.trainable = false});
  Node& train = optimizer.minimize(loss, step);
  Node& init = initialize_variables(graph);
  Session session(graph);
  session.run({init});
  Values expected = start;
  for (int i = 1; i <= 20; ++i) {
    session.run({train});
    expected = rule(expected, i);
    const auto [value, count] = session.run({}, fetch(w, step));
    EXPECT_EQ(count.value<int64_t>(), i);
    for (size_t k = 0; k < 3; ++k)
      EXPECT_NEAR(value.data<double>()[k], expected[k], 1e-12) << "step " << i << ", element " << k;
  }
}

TEST(GradientDescent, FollowsItsRule) {
  expect_follows(GradientDescent(0.1), [](Values w, int) {
    const Values g = gradient(w);
    for (size_t i = 0; i < 3; ++i) w[i] -= 0.1 * g[i];
    return w;
  });
}

void expect_momentum(bool use_nesterov) {
  Values m{};
  expect_follows(Momentum(0.05, 0.9, use_nesterov), [&](Values w, int) {
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
  const RmsProp optimizer(0.05, {.decay = 0.8, .momentum = 0.5, .is_centered = is_centered});
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
  // beta powers and epsilon are float attributes of TensorFlow's op only by way of constants of the
  // variable's dtype.
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

TEST(Optimizer, SlotsAreNamedAndPlacedAsTensorFlowsAre) {
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

TEST(Optimizer, SaysWhyThereIsNothingToTrain) {
  Graph graph;
  const Output loss = constant(graph, Tensor::scalar(1.0F));
  try {
    GradientDescent(0.1).minimize(loss);
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.message(),
              "there is nothing to train: the graph has no trainable variables; make them with "
              "variable()");
  }
  variable(graph, "w", {2});
  try {
    GradientDescent(0.1).minimize(loss);
    FAIL();
  } catch (const Error& error) {
    EXPECT_TRUE(error.message().starts_with(concat("no variable has a gradient (", __FILE__, ":",
                                                   __LINE__ - 4, "): the loss does not")))
        << error.message();
  }
}

TEST(Optimizer, ATransformationMustLeaveSomething) {
  Graph graph;
  const Output w = variable(graph, "w", {2}, initializers::ones());
  const Output loss = sum(square(w));
  using Pairs = std::vector<GradientAndVariable>;
  for (const Pairs& left : {Pairs(), Pairs{{Output{}, w}}}) {
    GradientDescent optimizer(0.1);
    optimizer.set_gradient_transform([&](Pairs) { return left; });
    EXPECT_THROW(optimizer.minimize(loss), Error);
  }
}

TEST(Adam, TakesVariablesOfSeveralTypes) {
  Graph graph;
  const Output a = variable(graph, "a", {}, initializers::ones(), f64);
  const Output b = variable(graph, "b", {}, initializers::ones());
  Node& train = Adam(0.1).minimize(square(a) + cast(square(b), f64));
  Node& init = initialize_variables(graph);
  Session session(graph);
  session.run({init});
  for (int i = 0; i < 3; ++i) session.run({train});
  const auto [wide, narrow] = session.run({}, fetch(a, b));
  EXPECT_LT(wide.value<double>(), 0.8);
  EXPECT_NEAR(wide.value<double>(), narrow.value<float>(), 1e-5);
}

TEST(Optimizer, ARateThatWasNeverSetIsRefused) { EXPECT_THROW(GradientDescent{Output{}}, Error); }

}  // namespace
}  // namespace leat
