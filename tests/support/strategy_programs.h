// A small training for tests of strategies: its data, its model, and a program per worker.
#pragma once

#include <cmath>
#include <memory>
#include <string>

#include "frontends/cpp/optimizers/optimizers.h"
#include "frontends/cpp/strategies/strategy.h"
#include "frontends/cpp/training/training_hooks.h"
#include "frontends/cpp/training/training_session.h"
#include "tests/support/in_process_cluster.h"

namespace leat::strategy_programs {

inline constexpr float rate = 0.1F;
inline constexpr float start = 1;

// Element i is x(i).
inline float x(int64_t i) { return std::sin(static_cast<float>(i)); }

inline Dataset numbers() {
  Tensor values(f32, {240});
  for (int64_t i = 0; i < 240; ++i) values.data<float>()[i] = x(i);
  return datasets::from_tensor_slices(values).repeat().batch(1);
}
// Of the worker k of n, in step i.
inline float x_of(int n, int k, int64_t i) { return x((i * n + k) % 240); }

// loss = (w - x)² / 2, so the gradient of w is w - x.
inline Losses follow(const Batch& batch) {
  Graph& g = batch[0].graph();
  Output w = variable(g, "w", {}, initializers::constant(start));
  return {.loss = mean(square(w - batch[0])) * 0.5F, .metrics = {{"w", w * 1.0F}}};
}

// What a program of worker `k` does.
struct Program {
  Program(const std::string& strategy, const StrategyCluster& cluster,
          const Optimizer& optimizer = Sgd{rate}, const ModelFunction& model = follow)
      : made(make_strategy(strategy, cluster)),
        training(made->minimize(graph, optimizer, numbers(), model)) {}

  // Until that global step; returns the variable w.
  float train(int64_t steps, TrainingOptions options = {}) {
    options.hooks.push_back(stop_at(steps));
    TrainingSession session(training, options);
    while (!session.should_stop()) session.step({});
    session.run();
    if (training.is_idle) return 0;
    const float w = session.session().run(variable_named(graph, "w")).item<float>();
    session.close();
    return w;
  }

  Graph graph;
  std::unique_ptr<Strategy> made;
  Training training;
};

inline StrategyCluster member(InProcessCluster& cluster, int k) {
  return {cluster.spec(), {"worker", k}, cluster.target("worker", k)};
}

// The gradient is 1, and so is the rate: the variable counts updates.
inline Losses count_updates(const Batch& batch) {
  Graph& g = batch[0].graph();
  Output w = variable(g, "w", {}, initializers::constant(0));
  return {.loss = sum(w + batch[0] * 0)};
}

// Plain gradient descent.
inline float descended(int64_t steps) {
  float w = start;
  for (int64_t i = 0; i < steps; ++i) w -= rate * (w - x(i));
  return w;
}

}  // namespace leat::strategy_programs
