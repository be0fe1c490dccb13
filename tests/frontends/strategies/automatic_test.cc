// Automatic: what it decides, and that it trains as a synchronous strategy does.
#include "frontends/cpp/strategies/automatic.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <map>

#include "frontends/cpp/nn/nn.h"
#include "tests/support/strategy_programs.h"

namespace leat {
namespace {

using namespace strategy_programs;
using Way = AutomaticChoice::Way;

// A table of which a step reads four rows, a large and a small dense variable, and one that is not
// trained.
Losses mixed(const Batch& batch) {
  Graph& g = batch[0].graph();
  const Output ids =
      cast(floor(abs(reshape(batch[0], {1}) * Tensor::of<float>({4}, {9, 99, 999, 9}))), i32);
  const Output rows = nn::embedding(ids, 1'000, 8, {.initializer = initializers::constant(0.5)});
  const Output large = variable(g, "large", {600'000}, initializers::constant(0.01));
  const Output small = variable(g, "small", {8}, initializers::constant(1));
  variable(g, "kept", {3}, {.trainable = false});
  return {.loss = mean(square(rows * small - batch[0])) + mean(square(large - batch[0]))};
}

std::map<std::string, AutomaticChoice> choices(const Automatic& strategy) {
  std::map<std::string, AutomaticChoice> out;
  for (const auto& each : strategy.choose(Sgd{rate}, numbers(), mixed)) out[each.variable] = each;
  return out;
}

constexpr double us = 50, speed = 1'000;
const AutomaticOptions measured{.trip_us = us, .megabytes_per_second = speed};

TEST(Automatic, CostsFollowTheFormulas) {
  constexpr double n = 4, k = 2, s = 2'400'000, all = s + 32'000 + 32;
  InProcessCluster cluster({{"ps", 2}, {"worker", 4}});
  const auto found = choices(Automatic(member(cluster, 0), measured));
  const auto& large = found.at("large");
  EXPECT_EQ(large.bytes, s);
  EXPECT_DOUBLE_EQ(large.costs[0], 2 * us + 2 * (n - 1) / n * s / speed);
  EXPECT_DOUBLE_EQ(large.costs[1],
                   2 * us + 2 * n * (n - 1) * s / ((n * n + n * k - 2 * k) * speed));
  EXPECT_DOUBLE_EQ(large.costs[2], 2 * us + 2 * s * n / (all / s) / speed);
  EXPECT_TRUE(std::isinf(large.costs[3]));
  EXPECT_EQ(large.way, Way::mix);
  const auto& small = found.at("small");
  EXPECT_DOUBLE_EQ(small.costs[0], us + (n - 1) * 32 / speed);  // one trip
  EXPECT_EQ(small.way, Way::all_reduce);
  const auto& table = found.at("embedding/embeddings");
  EXPECT_EQ(table.gradient_bytes, 4 * (8 * 4 + 4));
  EXPECT_DOUBLE_EQ(table.costs[3], 2 * us + 2 * 144 * n / k / speed);
  EXPECT_EQ(table.way, Way::rows);
  EXPECT_TRUE(found.at("kept").costs.empty());
}

TEST(Automatic, DecidesByClusterAndMeasurements) {
  InProcessCluster without_ps({{"worker", 4}});
  EXPECT_EQ(choices(Automatic(member(without_ps, 0), measured)).at("large").way, Way::all_reduce);
  // A trip costs more than a small table.
  auto slow = measured;
  slow.trip_us = 5'000;
  EXPECT_EQ(choices(Automatic(member(without_ps, 0), slow)).at("embedding/embeddings").way,
            Way::all_reduce);
  auto bounded = measured;
  bounded.largest_copy = 1'000'000;
  EXPECT_EQ(choices(Automatic(member(without_ps, 0), bounded)).at("large").way, Way::servers);
}

TEST(Automatic, ExplainsItself) {
  InProcessCluster cluster({{"ps", 2}, {"worker", 4}});
  const Automatic strategy(member(cluster, 0), measured);
  EXPECT_EQ(
      strategy.explain(strategy.choose(Sgd{rate}, numbers(), mixed)),
      "automatic: 4 workers, 2 servers, 50 µs per trip, 1000 MB/s; µs per step\n"
      "variable              bytes    gradient  all_reduce  mix   servers  rows  choice\n"
      "embedding/embeddings  32000    144       146         138   228      101   rows\n"
      "large                 2400000  2400000   3700        2980  19047    -     mix\n"
      "small                 32       32        50          100   100      -     all_reduce\n"
      "kept                  12       0         -           -     -        -     not trained\n");
}

struct Values {
  std::vector<float> table, large, small;
};

Values trained(const std::string& strategy, const StrategyCluster& cluster,
               const Optimizer& optimizer) {
  Program program(strategy, cluster, optimizer, mixed);
  TrainingSession session(program.training);
  for (int i = 0; i < 5; ++i) session.step({});
  EXPECT_EQ(session.global_step(), 5);
  const auto read = [&](const char* name) {
    const Tensor all = session.session().run(variable_named(program.graph, name));
    return std::vector<float>(all.span<float>().begin(), all.span<float>().begin() + 8);
  };
  return {read("embedding/embeddings"), read("large"), read("small")};
}

TEST(Automatic, TellsItsTraining) {
  InProcessCluster cluster({{"worker", 2}});
  const Program program("automatic", member(cluster, 0), Sgd{rate}, mixed);
  EXPECT_THAT(program.training.explanation, testing::HasSubstr("embedding/embeddings"));
}

// Whatever it decides, one update with the mean gradient.
TEST(Automatic, TrainsAsSynchronousStrategiesDo) {
  using testing::FloatNear;
  using testing::Pointwise;
  InProcessCluster cluster({{"ps", 2}, {"worker", 3}});
  const auto compare = [&](const Optimizer& optimizer) {
    const Values expected = trained("parameter_server:staleness=0", member(cluster, 0), optimizer);
    for (const char* strategy :
         {"automatic", "automatic:trip_us=10", "automatic:largest_copy=1000:bandwidth=10"}) {
      const Values values = trained(strategy, member(cluster, 0), optimizer);
      EXPECT_THAT(values.table, Pointwise(FloatNear(1e-6F), expected.table)) << strategy;
      EXPECT_THAT(values.large, Pointwise(FloatNear(1e-6F), expected.large)) << strategy;
      EXPECT_THAT(values.small, Pointwise(FloatNear(1e-6F), expected.small)) << strategy;
    }
  };
  compare(Sgd{rate});
  compare(Adam{0.01, {.lazy = false}});
}

// Only what is decided to be a copy has copies.
TEST(Automatic, PutsVariablesWhereItSays) {
  InProcessCluster cluster({{"ps", 2}, {"worker", 4}});
  const Program program("automatic:trip_us=50:bandwidth=1000", member(cluster, 0), Sgd{rate},
                        mixed);
  Graph& graph = const_cast<Graph&>(program.graph);
  const auto job = [&](const char* name) {
    return *variable_named(graph, name).node->requested_device->job;
  };
  EXPECT_EQ(job("embedding/embeddings"), "ps");
  EXPECT_FALSE(variable_named(graph, "worker_1/embedding/embeddings"));
  for (const char* name : {"large", "small", "kept"}) {
    EXPECT_EQ(job(name), "worker");
    EXPECT_TRUE(variable_named(graph, concat("worker_3/", name))) << name;
  }
}

}  // namespace
}  // namespace leat
