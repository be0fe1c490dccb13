// Learning-rate schedules against their formulas, step by step.
#include "frontends/cpp/optimizers/schedules.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "frontends/cpp/optimizers/optimizers.h"
#include "frontends/cpp/session.h"

namespace leat {
namespace {

void expect_values(const std::function<Output(Output step)>& schedule,
                   const std::function<double(double step)>& formula) {
  Graph graph;
  const Output step = placeholder(graph, "step", i64, {});
  const Output rate = schedule(step);
  EXPECT_EQ(rate.dtype(), f32);
  Session session(graph);
  for (const int64_t at : {0, 1, 7, 10, 15, 20, 25, 1000}) {
    const Tensor value = session.run({{step, Tensor::scalar(at)}}, {rate})[0];
    EXPECT_NEAR(value.item<float>(), formula(static_cast<double>(at)), 1e-6) << "step " << at;
  }
}

TEST(Schedules, ExponentialDecay) {
  expect_values(
      [](Output s) {
        return schedules::exponential_decay(0.5, s, {.decay_steps = 10, .decay_rate = 0.9});
      },
      [](double s) { return 0.5 * std::pow(0.9, s / 10); });
  expect_values(
      [](Output s) {
        return schedules::exponential_decay(
            0.5, s, {.decay_steps = 10, .decay_rate = 0.9, .staircase = true});
      },
      [](double s) { return 0.5 * std::pow(0.9, std::floor(s / 10)); });
}

TEST(Schedules, ExponentialDecayTakesNumbers) {
  expect_values([](Output s) { return schedules::exponential_decay(0.5, s, 10, 0.9); },
                [](double s) { return 0.5 * std::pow(0.9, s / 10); });
}

TEST(Schedules, InverseTimeDecay) {
  expect_values(
      [](Output s) {
        return schedules::inverse_time_decay(0.5, s, {.decay_steps = 10, .decay_rate = 2});
      },
      [](double s) { return 0.5 / (1 + 2 * s / 10); });
  expect_values(
      [](Output s) {
        return schedules::inverse_time_decay(
            0.5, s, {.decay_steps = 10, .decay_rate = 2, .staircase = true});
      },
      [](double s) { return 0.5 / (1 + 2 * std::floor(s / 10)); });
}

TEST(Schedules, PolynomialDecay) {
  expect_values(
      [](Output s) {
        return schedules::polynomial_decay(
            0.5, s, {.decay_steps = 20, .end_learning_rate = 0.1, .power = 2});
      },
      [](double s) { return 0.4 * std::pow(1 - std::min(s, 20.0) / 20, 2) + 0.1; });
}

TEST(Schedules, CosineDecay) {
  expect_values(
      [](Output s) { return schedules::cosine_decay(0.5, s, {.decay_steps = 20, .alpha = 0.2}); },
      [](double s) {
        return 0.5 * (0.8 * 0.5 * (1 + std::cos(M_PI * std::min(s, 20.0) / 20)) + 0.2);
      });
}

TEST(Schedules, PiecewiseConstant) {
  expect_values(
      [](Output s) {
        return schedules::piecewise_constant(s, {7, 20}, {3, 2, 1});
      },
      [](double s) { return s <= 7    ? 3
                            : s <= 20 ? 2
                                      : 1; });
  expect_values([](Output s) { return schedules::piecewise_constant(s, {}, {3}); },
                [](double) { return 3; });
}

TEST(Schedules, LinearWarmUpWrapsAnotherSchedule) {
  expect_values(
      [](Output s) {
        return schedules::linear_warm_up(
            schedules::exponential_decay(0.5, s, {.decay_steps = 10, .decay_rate = 0.9}), s, 20);
      },
      [](double s) { return 0.5 * std::pow(0.9, s / 10) * std::min(1.0, (s + 1) / 20); });
}

// A step uses the rate of the step count before it.
TEST(Schedules, LinearScalingWarmsUp) {
  expect_values([](Output s) { return schedules::linear_scaling(0.1, 4, s, {.warmup_steps = 20}); },
                [](double s) { return 0.1 * (1 + 3 * std::min(s / 20, 1.0)); });
  expect_values([](Output s) { return schedules::linear_scaling(0.1, 4, s); },
                [](double) { return 0.4; });
}

// What a run of a program with that number of replicas sees in the steps from `begin` on; it
// continues from what `kept` has, if that is not empty.
std::vector<float> rates_of_run(int replicas, int64_t begin, int64_t end,
                                std::vector<Tensor>& kept) {
  Graph graph;
  const Output step = placeholder(graph, "step", i64, {});
  const Output rate =
      schedules::linear_scaling(1, replicas, step, {.warmup_steps = 10, .follows_changes = true});
  const std::vector<Output> variables = graph.collection("variables");
  EXPECT_EQ(variables.size(), 3U);
  Node& init = initialize_variables(graph);
  std::vector<Output> restored, values;
  for (const Output& each : variables) {
    values.push_back(placeholder(graph, "value", each.dtype(), {}));
    restored.push_back(assign(each, values.back()));
  }
  Session session(graph);
  session.run({init});
  for (size_t i = 0; i < kept.size(); ++i) session.run({{values[i], kept[i]}}, {restored[i]});
  std::vector<float> out;
  for (int64_t i = begin; i < end; ++i)
    out.push_back(session.run({{step, Tensor::scalar(i)}}, {rate})[0].item<float>());
  kept = session.run({}, variables);
  return out;
}

TEST(Schedules, LinearScalingFollowsTheNumberOfReplicasWithoutAJump) {
  std::vector<Tensor> kept;
  float last = 1;
  int64_t step = 0;
  struct Run {
    int replicas;
    int64_t steps;
    std::vector<float> first;  // the first rates
    float last;
  };
  for (const Run& run : std::vector<Run>{{3, 15, {1, 1.2F, 1.4F}, 3},  // the first warm-up
                                         {3, 5, {3, 3, 3}, 3},         // restarted, unchanged
                                         {5, 6, {3, 3.2F, 3.4F}, 4},   // and on its way …
                                         {2, 4, {4.2F, 3.98F, 3.76F}, 3.54F},
                                         {1, 30, {3.32F, 3.088F, 2.856F}, 1}}) {
    const std::vector<float> rates = rates_of_run(run.replicas, step, step + run.steps, kept);
    for (size_t i = 0; i < run.first.size(); ++i)
      EXPECT_NEAR(rates[i], run.first[i], 1e-5) << run.replicas << " replicas, " << i;
    EXPECT_NEAR(rates.back(), run.last, 1e-5) << run.replicas << " replicas";
    for (const float rate : rates) {
      EXPECT_LE(std::fabs(rate - last), 0.24F) << run.replicas << " replicas";
      last = rate;
    }
    step += run.steps;
  }
}

TEST(Schedules, LinearScalingTakesANumberThatIsFed) {
  Graph graph;
  const Output step = placeholder(graph, "step", i64, {}),
               replicas = placeholder(graph, "replicas", i32, {});
  const Output rate =
      schedules::linear_scaling(1, replicas, step, {.warmup_steps = 4, .follows_changes = true});
  Node& init = initialize_variables(graph);
  Session session(graph);
  session.run({init});
  std::vector<float> rates;
  for (int64_t i = 0; i < 12; ++i) {
    const Tensor count = Tensor::scalar<int32_t>(i < 6 ? 3 : 2);
    rates.push_back(
        session.run({{step, Tensor::scalar(i)}, {replicas, count}}, {rate})[0].item<float>());
  }
  EXPECT_THAT(rates, testing::ElementsAre(1, 1.5F, 2, 2.5F, 3, 3, 3, 2.75F, 2.5F, 2.25F, 2, 2));
}

TEST(Schedules, SetTheRateOfOptimizers) {
  Graph graph;
  const Output w = variable(graph, "w", {}, initializers::zeros(), f64);
  const Output step =
      variable(graph, "global_step", {}, initializers::zeros(), i64, {.trainable = false});
  Node& train = Sgd(schedules::piecewise_constant(step, {0, 1}, {100, 10, 1}))
                    .minimize(w, {.global_step = step});
  Node& init = initialize_variables(graph);
  Session session(graph);
  session.run({init});
  for (const double expected : {-100, -110, -111, -112}) {
    session.run({train});
    EXPECT_EQ(session.run({}, {w})[0].item<double>(), expected);
  }
}

TEST(Schedules, ReportMistakes) {
  Graph graph;
  const Output step = placeholder(graph, "step", i64, {}), real = placeholder(graph, "x", f32, {});
  const auto message_of = [](const std::function<void()>& make) {
    try {
      make();
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), Code::invalid_argument);
      return error.message();
    }
    return std::string("nothing");
  };
  EXPECT_THAT(message_of([&] { schedules::cosine_decay(1, real, {.decay_steps = 10}); }),
              testing::HasSubstr("the step must be of an integer type, but 'x:0' is float"));
  EXPECT_THAT(message_of([&] { schedules::cosine_decay(1, step, {.decay_steps = 0}); }),
              testing::HasSubstr("the number of steps must be positive, got 0"));
  EXPECT_THAT(message_of([&] {
                schedules::piecewise_constant(step, {1, 2}, {1});
              }),
              testing::HasSubstr("one more value than boundaries, got 2 boundaries and 1 values"));
  EXPECT_THAT(message_of([&] {
                schedules::piecewise_constant(step, {2, 1}, {1, 2, 3});
              }),
              testing::HasSubstr("the boundaries must ascend"));
  const Output w = variable(graph, "w", {2});
  EXPECT_THAT(message_of([&] { Sgd(w).minimize(sum(w)); }),
              testing::HasSubstr("the learning rate 'w:0' must be a scalar, got [2]"));
}

}  // namespace
}  // namespace leat
