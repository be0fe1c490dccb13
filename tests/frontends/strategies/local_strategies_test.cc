// Strategies whose workers train alone for some steps.
#include <gtest/gtest.h>

#include "tests/support/strategy_programs.h"

namespace leat {
namespace {

using namespace strategy_programs;

TEST(Strategies, LocalSgdTakesTheMeanOfWhatWorkersHaveReached) {
  constexpr int n = 3, tau = 4;
  InProcessCluster cluster({{"worker", n}});
  std::vector<float> w(n, start);
  for (int i = 0; i < 10; ++i) {
    for (int k = 0; k < n; ++k) w[k] -= rate * (w[k] - x_of(n, k, i));
    if ((i + 1) % tau != 0 && i != 9) continue;  // and at the end
    float mean = 0;
    for (const float each : w) mean += each / n;
    w.assign(n, mean);
  }
  EXPECT_NEAR(Program("local_sgd:steps=4", member(cluster, 0)).train(10), w[0], 1e-6);
}

TEST(Strategies, SimuParallelSgdTakesOneMeanAtTheEnd) {
  constexpr int n = 3;
  InProcessCluster cluster({{"worker", n}});
  float mean = 0;
  for (int k = 0; k < n; ++k) {
    float w = start;
    for (int i = 0; i < 9; ++i) w -= rate * (w - x_of(n, k, i));
    mean += w / n;
  }
  EXPECT_NEAR(Program("simu_parallel_sgd", member(cluster, 0)).train(9), mean, 1e-6);
}

TEST(Strategies, BlockMomentumFollowsItsFormula) {
  constexpr int n = 2, tau = 3;
  constexpr float momentum = 0.5F, zeta = 0.9F;
  InProcessCluster cluster({{"worker", n}});
  for (const bool nesterov : {false, true}) {
    std::vector<float> w(n, start);
    float begun = start, delta = 0;
    for (int i = 0; i < 12; ++i) {
      for (int k = 0; k < n; ++k) w[k] -= rate * (w[k] - x_of(n, k, i));
      if ((i + 1) % tau != 0) continue;
      const float mean = (w[0] + w[1]) / 2;
      delta = momentum * delta + zeta * (begun - mean);
      begun -= delta;
      if (nesterov) begun -= momentum * delta;
      w.assign(n, begun);
    }
    const std::string strategy =
        concat("bmuf:steps=3:momentum=0.5:rate=0.9:nesterov=", nesterov ? "true" : "false");
    EXPECT_NEAR(Program(strategy, member(cluster, 0)).train(12), w[0], 1e-6) << strategy;
  }
}

// The workers' momentum is cleared after each block, unless clear_momentum=false.
TEST(Strategies, BlockMomentumClearsThatOfTheWorkers) {
  constexpr int n = 2, tau = 3;
  constexpr float momentum = 0.5F, local = 0.9F;
  InProcessCluster cluster({{"worker", n}});
  for (const bool clears : {true, false}) {
    std::vector<float> w(n, start), velocity(n, 0);
    float begun = start, delta = 0;
    for (int i = 0; i < 12; ++i) {
      for (int k = 0; k < n; ++k) {
        velocity[k] = local * velocity[k] + (w[k] - x_of(n, k, i));
        w[k] -= rate * velocity[k];
      }
      if ((i + 1) % tau != 0) continue;
      delta = momentum * delta + (begun - (w[0] + w[1]) / 2);
      begun -= delta;
      w.assign(n, begun);
      if (clears) velocity.assign(n, 0);
    }
    const std::string strategy = concat("bmuf:steps=3:momentum=0.5:nesterov=false:clear_momentum=",
                                        clears ? "true" : "false");
    EXPECT_NEAR(
        Program(strategy, member(cluster, 0), Momentum{rate, {.momentum = local}}).train(12), w[0],
        1e-6)
        << strategy;
  }
}

// Of Adam's numbers only the momentum.
TEST(Strategies, BlocksOfAdamKeepItsSquares) {
  InProcessCluster cluster({{"worker", 2}});
  Program program("bmuf:steps=3:momentum=0:nesterov=false", member(cluster, 0), Adam{rate});
  TrainingSession session(program.training);
  for (int i = 0; i < 3; ++i) session.step({});
  for (const char* replica : {"", "worker_1/"}) {
    const auto value = [&](const char* name) {
      const Output variable = variable_named(program.graph, concat(replica, name));
      return session.session().run(variable).item<float>();
    };
    EXPECT_EQ(value("w/Adam"), 0);
    EXPECT_GT(value("w/Adam_1"), 0);
    EXPECT_FLOAT_EQ(value("beta1_power"), std::pow(0.9F, 4.0F));
  }
}

// Of RMSProp's the last one, which is the second or the third.
TEST(Strategies, BlocksOfRmsPropKeepItsSquares) {
  InProcessCluster cluster({{"worker", 2}});
  for (const bool centered : {false, true}) {
    Program program("bmuf:steps=3:momentum=0:nesterov=false", member(cluster, 0),
                    RmsProp{rate, {.momentum = 0.5, .centered = centered}});
    TrainingSession session(program.training);
    for (int i = 0; i < 3; ++i) session.step({});
    const auto value = [&](const char* name) {
      return session.session().run(variable_named(program.graph, name)).item<float>();
    };
    EXPECT_EQ(value(centered ? "w/RMSProp_2" : "w/RMSProp_1"), 0);
    EXPECT_NE(value("w/RMSProp"), 0);
    if (centered) {
      EXPECT_NE(value("w/RMSProp_1"), 0);
    }
  }
}

TEST(Strategies, AdmmFollowsItsFormula) {
  constexpr int n = 3, steps = 5;
  constexpr float rho = 0.5F;
  InProcessCluster cluster({{"worker", n}});
  std::vector<float> w(n, start), u(n, 0);
  float z = start;
  for (int i = 0; i < 20; ++i) {
    for (int k = 0; k < n; ++k) w[k] -= rate * (w[k] - x_of(n, k, i) + rho * (w[k] - z + u[k]));
    if ((i + 1) % steps != 0) continue;
    z = 0;
    for (int k = 0; k < n; ++k) z += (w[k] + u[k]) / n;
    for (int k = 0; k < n; ++k) u[k] += w[k] - z;
  }
  EXPECT_NEAR(Program("admm:steps=5:rho=0.5", member(cluster, 0)).train(20), z, 1e-6);
}

TEST(Strategies, EasgdTiesEachWorkerToTheCentre) {
  constexpr int n = 2, tau = 2;
  constexpr float alpha = 0.25F;
  InProcessCluster cluster({{"ps", 1}, {"worker", n}});
  const std::string strategy = "easgd:steps=2:moving_rate=0.25";
  // One program after the other: this schedule is known.
  Program first(strategy, member(cluster, 0)), second(strategy, member(cluster, 1));
  float c = start;
  const auto worker = [&](int k, int steps) {
    float w = c;  // a program begins at the centre
    for (int i = 0; i < steps; ++i) {
      w -= rate * (w - x_of(n, k, i));
      if ((i + 1) % tau != 0) continue;
      const float e = alpha * (w - c);
      w -= e;
      c += e;
    }
    return c;
  };
  EXPECT_NEAR(first.train(6), worker(0, 6), 1e-6);
  // The global step counts the steps of both: 6 are made.
  EXPECT_NEAR(second.train(10, {.is_chief = false}), worker(1, 4), 1e-6);
}

}  // namespace
}  // namespace leat
