// A small training for tests of strategies: its data, its model, and a program per worker.
#pragma once

#include <atomic>
#include <cmath>
#include <future>
#include <memory>
#include <string>
#include <vector>

#include "frontends/cpp/nn/dense.h"
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

// Two layers: variables of several shapes.
inline Losses layers(const Batch& batch) {
  const auto random = initializers::random_normal(0, 0.5, 7);
  Output h = nn::dense(reshape(batch[0], {1, 1}) * constant(batch[0].graph(), {1.0F, -2.0F, 0.5F}),
                       11, {.activation = tanh, .kernel_initializer = random, .name = "first"});
  Output out = nn::dense(h, 1, {.kernel_initializer = random, .name = "second"});
  return {.loss = mean(square(out - 0.3F * batch[0]))};
}

// run(k) of each of n programs, in threads of their own.
template <class Run>
auto in_programs(int n, const Run& run) {
  std::vector<std::future<decltype(run(0))>> out;
  for (int k = 0; k < n; ++k) out.push_back(std::async(std::launch::async, run, k));
  return out;
}
template <class T>
std::vector<T> results_of(std::vector<std::future<T>> programs) {
  std::vector<T> out;
  for (auto& each : programs) out.push_back(each.get());
  return out;
}

// The program's own copy of a variable of the model.
inline Output own_copy(const Program& program, int k, const Output& variable) {
  return k == 0 ? variable : program.made->replicas().copy_of(variable, k);
}

// By program: all numbers of the model after so many steps; none of a program that is idle.
inline std::vector<std::vector<float>> trained(InProcessCluster& cluster, int n, int64_t steps,
                                               const std::string& strategy,
                                               const ModelFunction& model) {
  return results_of(in_programs(n, [&](int k) {
    Program program(strategy, member(cluster, k), Momentum{0.1}, model);
    TrainingSession session(program.training, {.session = {.timeout = std::chrono::seconds(20)}});
    std::vector<float> out;
    if (program.training.is_idle) return out;
    for (int64_t i = 0; i < steps; ++i) session.step({});
    std::vector<Output> variables;
    for (const Output& each : trainable_variables(program.graph))
      variables.push_back(own_copy(program, k, each));
    for (const Tensor& each : session.session().run({}, variables))
      out.insert(out.end(), each.span<float>().begin(), each.span<float>().end());
    return out;
  }));
}

// By program: w of `follow` after so many steps. The task of program `victim` is killed before step
// `at_step`, and is back without variables. -1: none.
inline std::vector<float> trained_through_a_loss(InProcessCluster& cluster, int n,
                                                 const std::string& strategy, int64_t steps,
                                                 int victim, int64_t at_step) {
  std::atomic<bool> is_killed = false;
  return results_of(in_programs(n, [&](int k) {
    Program program(strategy, member(cluster, k), Momentum{0.1});
    TrainingSession session(program.training, {.session = {.timeout = std::chrono::seconds(20)}});
    while (session.global_step() < steps) {
      if (k == victim && session.global_step() == at_step && !is_killed.exchange(true)) {
        cluster.kill("worker", k);
        cluster.restart("worker", k);
      }
      session.step({});
    }
    return session.session()
        .run(own_copy(program, k, variable_named(program.graph, "w")))
        .item<float>();
  }));
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
