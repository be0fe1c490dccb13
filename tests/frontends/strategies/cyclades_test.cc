// Cyclades: threads without conflicts, and the result of a single thread.
#include "frontends/cpp/strategies/cyclades.h"

#include <gtest/gtest.h>

#include <map>
#include <numeric>
#include <random>

#include "frontends/cpp/nn/nn.h"
#include "frontends/cpp/strategies/parts/conflicts.h"
#include "tests/support/expect_error.h"
#include "tests/support/strategy_programs.h"

namespace leat {
namespace {

using namespace strategy_programs;

constexpr int64_t samples = 120;

std::vector<int32_t> random_ids(int64_t n, int32_t rows, unsigned seed) {
  std::mt19937 generator(seed);
  std::vector<int32_t> out(static_cast<size_t>(n));
  for (int32_t& each : out) each = static_cast<int32_t>(generator() % static_cast<unsigned>(rows));
  return out;
}

Tensor tensor_of(const std::vector<int32_t>& values, const Shape& shape) {
  Tensor out(i32, shape);
  std::copy(values.begin(), values.end(), out.data<int32_t>());
  return out;
}

// The component of each sample: samples that share a row of a table are in one.
std::vector<int> components(const std::vector<int32_t>& users, const std::vector<int32_t>& items) {
  std::vector<int> parent(users.size());
  std::iota(parent.begin(), parent.end(), 0);
  const auto root = [&](int i) {
    while (parent[static_cast<size_t>(i)] != i) i = parent[static_cast<size_t>(i)];
    return i;
  };
  std::map<std::pair<int, int32_t>, int> first;
  for (size_t i = 0; i < users.size(); ++i) {
    for (const auto& row : {std::pair(0, users[i]), std::pair(1, items[i])}) {
      const int other = first.emplace(row, static_cast<int>(i)).first->second;
      parent[static_cast<size_t>(root(static_cast<int>(i)))] = root(other);
    }
  }
  for (size_t i = 0; i < parent.size(); ++i) parent[i] = root(static_cast<int>(i));
  return parent;
}

TEST(WithoutConflicts, KeepsComponentsTogether) {
  constexpr int threads = 3;
  for (const int32_t rows : {5, 40, 100, 1'000}) {
    const auto users = random_ids(60, rows, 1), items = random_ids(60, rows, 2);
    Graph g;
    const Output numbers = without_conflicts(
        {{constant(g, tensor_of(users, {60}))}, {constant(g, tensor_of(items, {60, 1}))}}, threads);
    const Tensor given = Session(g).run(numbers);
    std::map<int, int32_t> of_component;
    std::map<int32_t, int> load;
    std::map<int, int> size;
    const std::vector<int> component = components(users, items);
    for (size_t i = 0; i < 60; ++i) {
      const int32_t number = given.data<int32_t>()[i];
      EXPECT_GE(number, 0);
      EXPECT_LT(number, threads);
      EXPECT_EQ(of_component.emplace(component[i], number).first->second, number)
          << rows << " rows, sample " << i;
      ++load[number];
      ++size[component[i]];
    }
    int largest = 0;
    for (const auto& [which, count] : size) largest = std::max(largest, count);
    for (const auto& [number, count] : load) EXPECT_LE(count, 60 / threads + largest) << rows;
  }
}

// A chain of conflicts through all samples is one component, also in few passes.
TEST(WithoutConflicts, FollowsLongChains) {
  constexpr int n = 1'000;
  std::vector<int32_t> pairs;
  for (int32_t i = 0; i < n; ++i) pairs.insert(pairs.end(), {i, i + 1});
  std::swap(pairs.front(), pairs[1]);
  Graph g;
  const Tensor given =
      Session(g).run(without_conflicts({{constant(g, tensor_of(pairs, {n, 2}))}}, 4));
  for (int i = 0; i < n; ++i) EXPECT_EQ(given.data<int32_t>()[i], 0) << i;
}

Dataset ratings() {
  const auto users = random_ids(samples, 30, 3), items = random_ids(samples, 50, 4);
  Tensor stars(f32, {samples});
  for (int64_t i = 0; i < samples; ++i) stars.data<float>()[i] = x(i);
  return datasets::from_tensor_slices(
             {tensor_of(users, {samples}), tensor_of(items, {samples}), stars})
      .named({"user", "item", "stars"})
      .repeat();
}

Losses factors(const Batch& batch) {
  const auto table = [](const Output& ids, int64_t rows, const char* name) {
    return nn::embedding(ids, rows, 4,
                         {.initializer = initializers::random_uniform(-1, 1, 7), .name = name});
  };
  const Output u = table(batch["user"], 30, "users"), v = table(batch["item"], 50, "items");
  return {.loss = mean(square(sum(u * v, 1) - batch["stars"]))};
}

struct Trained {
  std::vector<float> users, items, losses;
  bool operator==(const Trained&) const = default;
};

Trained trained(const std::string& strategy, const Optimizer& optimizer, int64_t batch, int steps) {
  Graph graph;
  const auto made = make_strategy(strategy, {});
  const Training training = made->minimize(graph, optimizer, ratings().batch(batch), factors);
  TrainingSession session(training, {.fetches = {training.loss}});
  Trained out;
  for (int i = 0; i < steps; ++i) out.losses.push_back((*session.step({}))[0].item<float>());
  const auto values = [&](const char* name) {
    const Tensor all = session.session().run(variable_named(graph, name));
    return std::vector<float>(all.span<float>().begin(), all.span<float>().end());
  };
  out.users = values("users/embeddings");
  out.items = values("items/embeddings");
  return out;
}

TEST(Cyclades, HasTheResultOfOneThread) {
  const auto compare = [](const Optimizer& optimizer) {
    const Trained serial = trained("one_device", optimizer, 1, 240);
    for (const char* strategy : {"cyclades:threads=1", "cyclades:threads=3",
                                 "cyclades:threads=4:ids=user+item", "cyclades:ids=0+1"}) {
      const Trained parallel = trained(strategy, optimizer, 12, 20);
      EXPECT_EQ(parallel.users, serial.users) << strategy;
      EXPECT_EQ(parallel.items, serial.items) << strategy;
      float mean = 0;  // of the last step
      for (size_t i = 228; i < 240; ++i) mean += serial.losses[i] / 12;
      EXPECT_NEAR(parallel.losses.back(), mean, 1e-5) << strategy;
    }
  };
  compare(Sgd{0.1});
  compare(Adagrad{0.1});  // with slots
}

TEST(Cyclades, EndsWithItsData) {
  Graph graph;
  const auto made = make_strategy("cyclades", {});
  const Training training = made->minimize(graph, Sgd{0.1}, ratings().take(50).batch(12), factors);
  TrainingSession session(training);
  session.run();
  EXPECT_EQ(session.global_step(), 5);  // the last with two samples
}

TEST(Cyclades, AnErrorOfAThreadEndsTheTraining) {
  Graph graph;
  const auto fails = [](const Batch& batch) {
    Losses losses = factors(batch);
    losses.loss = losses.loss * check_numerics(1 / sum(batch["stars"] * 0), "in a thread");
    return losses;
  };
  const Training training =
      make_strategy("cyclades", {})->minimize(graph, Sgd{0.1}, ratings().batch(12), fails);
  TrainingSession session(training);
  expect_error_with(Code::invalid_argument, "in a thread", [&] { session.step({}); });
}

TEST(Cyclades, ReportsMistakes) {
  const auto minimize = [](const Optimizer& optimizer, const ModelFunction& model,
                           const Dataset& data) {
    Graph graph;
    make_strategy("cyclades", {})->minimize(graph, optimizer, data, model);
  };
  expect_error_with(Code::invalid_argument, "is not one of rows, so all samples are in conflict",
                    [&] { minimize(Sgd{1}, follow, numbers()); });
  expect_error_with(Code::invalid_argument, "the optimizer keeps 'beta1_power' for all rows",
                    [&] { minimize(Adam{1}, factors, ratings().batch(2)); });
  expect_error_with(Code::invalid_argument, "needs batches of samples",
                    [&] { minimize(Sgd{1}, factors, ratings()); });
}

}  // namespace
}  // namespace leat
