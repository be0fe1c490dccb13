// Models and programs for the tests of tensor parallelism.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <string>
#include <vector>

#include "frontends/cpp/nn/nn.h"
#include "frontends/cpp/strategies/tensor_parallel.h"
#include "frontends/cpp/training/training_hooks.h"
#include "frontends/cpp/training/training_session.h"
#include "tests/support/in_process_cluster.h"

namespace leat::split_models {

inline constexpr int batch_size = 8;

inline StrategyCluster member(InProcessCluster& cluster, int k = 0) {
  return {cluster.spec(), {"worker", k}, cluster.target("worker", k)};
}

// Numbers of about 1, and one of `classes` classes for each row.
inline Dataset examples(const Shape& row, int64_t classes, const BatchOptions& options = {}) {
  constexpr int64_t rows = 32;
  Shape shape{rows};
  for (const int64_t extent : row.dims()) shape.push_back(extent);
  Tensor x(f32, shape), y(i32, {rows});
  for (int64_t i = 0; i < shape.elements(); ++i)
    x.data<float>()[i] = std::sin(static_cast<float>(i * i % 977));
  for (int64_t i = 0; i < rows; ++i) y.data<int32_t>()[i] = static_cast<int32_t>(i * 7 % classes);
  return datasets::from_tensor_slices(std::vector<Tensor>{x, y})
      .repeat()
      .batch(batch_size, options);
}

// All draws have a seed, so that every program begins alike.
inline nn::DenseOptions layer(int64_t seed, const nn::Activation& activation = {}) {
  return {.activation = activation,
          .kernel_initializer = initializers::glorot_uniform({.seed = seed}),
          .bias_initializer = initializers::random_normal(0, 0.1, seed + 100)};
}

inline Losses of_logits(Output logits, const Batch& batch) {
  return {.loss = mean(nn::softmax_cross_entropy(logits, batch[1])),
          .metrics = {{"accuracy", nn::accuracy(logits, batch[1])}}};
}

inline Losses perceptron(const Batch& batch) {
  Output h = nn::dense(batch[0], 12, layer(1, relu));
  return of_logits(nn::dense(h, 4, layer(2)), batch);
}

class KeepLosses : public TrainingHook {
 public:
  KeepLosses(Output loss, std::vector<float>& losses) : loss_(loss), losses_(losses) {}
  std::vector<Output> fetches() override { return {loss_}; }
  void after_step(TrainingSession&, std::span<const Tensor> values) override {
    losses_.push_back(values[0].item<float>());
  }

 private:
  const Output loss_;
  std::vector<float>& losses_;
};

struct Result {
  std::vector<float> losses;
  std::map<std::string, Tensor> variables;  // by their names in a checkpoint
};

// What a program trains, and what one reads of it.
struct Program {
  Program(const std::string& name, const StrategyCluster& cluster, const Optimizer& optimizer,
          const Dataset& data, const ModelFunction& model)
      : strategy(make_strategy(name, cluster)),
        training(strategy->minimize(graph, optimizer, data, model)) {}

  std::vector<std::string> variable_names() const {
    std::vector<std::string> out;
    for (const Output& each : graph.collection("variables")) {
      const std::string name = checkpoint_name(each);
      if (std::find(out.begin(), out.end(), name) == out.end()) out.push_back(name);
    }
    return out;
  }
  Result train(int64_t steps, TrainingOptions options = {}) {
    std::map<std::string, Output> values;
    for (const std::string& name : variable_names())
      values[name] = identity(variable_named(graph, name));
    Result out;
    options.hooks.push_back(stop_at(steps));
    options.hooks.push_back(std::make_shared<KeepLosses>(training.loss, out.losses));
    TrainingSession session(training, options);
    while (!session.should_stop()) session.step({});
    session.run();
    for (const auto& [name, value] : values) out.variables[name] = session.session().run(value);
    return out;
  }
  // Collectives of that kind among the nodes of the model and its gradients.
  int64_t count(const std::string& collective) const {
    const std::string& text = training.explanation;
    int64_t out = 0;
    for (size_t at = text.find("* " + collective); at != std::string::npos;
         at = text.find("* " + collective, at + 1))
      ++out;
    return out;
  }
  // "dense/kernel [6,12] split 1" is in it.
  const std::string& explained() const { return training.explanation; }

  Graph graph;
  std::unique_ptr<Strategy> strategy;
  Training training;
};

inline void expect_near(const Tensor& value, const Tensor& expected, const std::string& name,
                        double tolerance) {
  ASSERT_EQ(value.shape(), expected.shape()) << name;
  if (value.dtype() != f32) return;
  double largest = 0, apart = 0;
  for (int64_t i = 0; i < value.shape().elements(); ++i) {
    const double a = value.data<float>()[i], b = expected.data<float>()[i];
    largest = std::max(largest, std::abs(b));
    apart = std::max(apart, std::abs(a - b));
  }
  EXPECT_LE(apart, tolerance * std::max(largest, 1e-3)) << name;
}

// Relative to the largest element: f32 keeps 6e-8, and sums in another order lose some of it.
inline void expect_equal(const Result& value, const Result& expected, double tolerance = 1e-6) {
  ASSERT_EQ(value.losses.size(), expected.losses.size());
  for (size_t i = 0; i < value.losses.size(); ++i)
    EXPECT_NEAR(value.losses[i], expected.losses[i], tolerance * 4) << "step " << i;
  for (const auto& [name, tensor] : expected.variables) {
    ASSERT_TRUE(value.variables.contains(name)) << name;
    expect_near(value.variables.at(name), tensor, name, tolerance * 4);
  }
  EXPECT_EQ(value.variables.size(), expected.variables.size());
}

inline Losses three_layers(const Batch& batch) {
  Output h = nn::dense(batch[0], 12, layer(1, tanh));
  h = nn::dense(h, 8, layer(2, sigmoid));
  return of_logits(nn::dense(h, 4, layer(3)), batch);
}

// A block of a transformer: attention and a perceptron, each with layer norm and a residual.
inline Losses attention_block(const Batch& batch) {
  const Output x = batch[0];  // [batch, time, 8]
  const auto project = [](Output x, int64_t units, std::string name, int64_t seed) {
    nn::DenseOptions options = layer(seed);
    // A bias of the keys changes nothing: its gradient is what rounding leaves.
    options.use_bias = name != "key";
    options.name = std::move(name);
    return nn::dense(x, units, options);
  };
  const Output normed = nn::layer_norm(x);
  const Output mixed = nn::attention(project(normed, 8, "query", 1), project(normed, 8, "key", 2),
                                     project(normed, 8, "value", 3), {.heads = 2, .causal = true});
  Output y = x + project(mixed, 8, "output", 4);
  const Output wide = relu(project(nn::layer_norm(y), 16, "wide", 5));
  y = y + project(wide, 8, "narrow", 6);
  return of_logits(project(mean(y, 1), 4, "logits", 7), batch);
}

inline Losses words(const Batch& batch) {
  const Output ids = cast(abs(batch[0] * 9.99F), i32);  // [batch, 5]
  Output rows = nn::embedding(ids, 12, 6, {.initializer = initializers::random_normal(0, 0.5, 3)});
  return of_logits(nn::dense(mean(rows, 1), 4, layer(2)), batch);
}

inline Losses convolutions(const Batch& batch) {
  Output x = reshape(batch[0], {-1, 6, 6, 1});
  const auto conv = [](Output x, int64_t filters, int64_t seed) {
    return nn::conv2d(
        x, filters, 3,
        {.activation = relu, .kernel_initializer = initializers::glorot_uniform({.seed = seed})});
  };
  x = max_pool(conv(x, 4, 1));
  x = conv(x, 8, 2);
  return of_logits(nn::dense(nn::flatten(x), 4, layer(3)), batch);
}

inline Losses normalised(const Batch& batch) {
  Output x = nn::conv2d(
      reshape(batch[0], {-1, 6, 6, 1}), 4, 3,
      {.use_bias = false, .kernel_initializer = initializers::glorot_uniform({.seed = 1})});
  x = relu(nn::batch_norm(x, true));
  return of_logits(nn::dense(nn::flatten(x), 4, layer(3)), batch);
}

// No extent is a multiple of 2: nothing can be split.
inline Losses uneven(const Batch& batch) {
  Output h = nn::dense(batch[0], 7, layer(1, relu));
  return of_logits(nn::dense(h, 3, layer(2)), batch);
}

inline Losses with_dropout(const Batch& batch) {
  Output h = nn::dense(batch[0], 12, layer(1, relu));
  h = nn::dropout(h, 0.5, {.seed = 5});
  return of_logits(nn::dense(h, 4, layer(2)), batch);
}

inline Losses resources(const Batch& batch) {
  Graph& g = batch[0].graph();
  const auto make = [&](const char* name, const Shape& shape, int64_t seed) {
    return variable(g, name, shape, initializers::random_normal(0, 0.3, seed), f32,
                    {.use_resource = true});
  };
  const Output h = relu(matmul(batch[0], make("a", {6, 12}, 1)));
  return of_logits(matmul(h, make("b", {12, 4}, 2)), batch);
}

}  // namespace leat::split_models
