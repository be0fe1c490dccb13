// Which server has which variable, and variables that a strategy cuts in row ranges.
#include "frontends/cpp/strategies/parts/server_sharding.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "frontends/cpp/nn/nn.h"
#include "frontends/cpp/strategies/parameter_server.h"
#include "frontends/cpp/strategies/parts/partitioned_variables.h"
#include "frontends/cpp/training/saver.h"
#include "tests/support/expect_error.h"
#include "tests/support/scratch_directory.h"
#include "tests/support/strategy_programs.h"

namespace leat {
namespace {

using namespace strategy_programs;
using testing::ElementsAre;
using Kind = ServerSharding::Kind;

std::vector<DeviceName> servers(int count) {
  std::vector<DeviceName> out;
  for (int i = 0; i < count; ++i) out.push_back(DeviceName::parse(concat("/job:ps/task:", i)));
  return out;
}

std::vector<int> tasks_of(const std::vector<DeviceName>& devices) {
  std::vector<int> out;
  for (const DeviceName& each : devices) out.push_back(*each.task);
  return out;
}

TEST(ServerSharding, BytesGoWhereTheFewestAre) {
  ServerChoice choice(servers(2), {});
  std::vector<DeviceName> chosen;
  for (const int64_t size : {10, 2, 3, 4, 5})
    chosen.push_back(choice.of_variable("w", {size}, f32));
  EXPECT_THAT(tasks_of(chosen), ElementsAre(0, 1, 1, 1, 1));
}

// A ring that chose otherwise in another version would move the variables of running servers.
TEST(ServerSharding, AHashRingIsTheSameEverywhere) {
  const HashRing ring({"/job:ps/task:0", "/job:ps/task:1", "/job:ps/task:2"});
  std::vector<size_t> members;
  for (const char* name : {"w", "b", "layer1/kernel", "layer1/bias", "layer2/kernel", "words"})
    members.push_back(ring.member_of(name));
  EXPECT_THAT(members, ElementsAre(0, 2, 0, 2, 2, 0));
}

TEST(ServerSharding, AnotherServerOfAHashRingTakesItsShareAndMovesNothingElse) {
  for (const int k : {2, 4, 8}) {
    ServerChoice before(servers(k), {.kind = Kind::consistent_hash}),
        after(servers(k + 1), {.kind = Kind::consistent_hash});
    int64_t all = 0, moved = 0;
    for (int64_t i = 0; i < 1000; ++i) {
      const std::string name = concat("layer", i / 2, i % 2 == 0 ? "/kernel" : "/bias");
      const Shape shape = {100 + (i * 37) % 200};
      const DeviceName from = before.of_variable(name, shape, f32),
                       to = after.of_variable(name, shape, f32);
      all += shape.elements();
      if (from.task == to.task) continue;
      moved += shape.elements();
      EXPECT_EQ(*to.task, k) << name;
    }
    const double share = static_cast<double>(moved) / static_cast<double>(all);
    EXPECT_NEAR(share, 1.0 / (k + 1), 0.25 / (k + 1)) << k;
  }
}

// ---- Variables of a program ----

const char* const three_servers =
    R"({"cluster": {"ps": ["h:1", "h:2", "h:3"], "worker": ["h:4"]}})";

std::vector<Output> parts_of_value(const Output& value) {
  const auto cut = partitioned_variable_of(value);
  return cut ? cut->parts() : std::vector<Output>();
}

std::vector<int> tasks_of(const std::vector<Output>& variables) {
  std::vector<int> out;
  for (const Output& each : variables) out.push_back(*each.node->requested_device->task);
  return out;
}

TEST(ServerSharding, RowsAreCutIntoEqualRangesOnAllServers) {
  const ParameterServer strategy(ClusterSpec::parse(three_servers),
                                 {.sharding = {.kind = Kind::rows}});
  Graph graph;
  const auto replica = strategy.replica(graph, 0);
  const NameScope layer(graph, "layer");
  const Output w = variable(graph, "w", {7, 2}), few = variable(graph, "few", {2, 50}),
               state = variable(graph, "state", {9}, {.trainable = false}),
               scalar = variable(graph, "scalar", {});
  EXPECT_EQ(w.shape(), Shape({7, 2}));
  EXPECT_EQ(w.node->requested_device->job, "worker");
  const std::vector<Output> parts = parts_of_value(w);
  ASSERT_EQ(parts.size(), 3U);
  EXPECT_THAT(tasks_of(parts), ElementsAre(0, 1, 2));
  for (size_t i = 0; i < 3; ++i) {
    EXPECT_EQ(variable_name(parts[i]), concat("layer/w/part_", i));
    EXPECT_EQ(parts[i].shape(), Shape({i == 0 ? 3 : 2, 2}));
    EXPECT_EQ(checkpoint_name(parts[i]), "layer/w");
  }
  EXPECT_THAT(tasks_of({few, state, scalar}), ElementsAre(1, 2, 0));
  EXPECT_EQ(trainable_variables(graph).size(), 5U);
}

TEST(ServerSharding, OnlyLargeVariablesAreCut) {
  for (const Kind kind : {Kind::bytes, Kind::consistent_hash}) {
    const ParameterServer strategy(ClusterSpec::parse(three_servers),
                                   {.sharding = {.kind = kind, .big_array_split = 60}});
    Graph graph;
    const auto replica = strategy.replica(graph, 0);
    EXPECT_EQ(parts_of_value(variable(graph, "large", {6, 10})).size(), 3U);
    EXPECT_TRUE(parts_of_value(variable(graph, "small", {6, 9})).empty());
    EXPECT_TRUE(parts_of_value(variable(graph, "few_rows", {2, 100})).empty());
  }
}

// A lookup, a product and a bias: what a variable in parts is used for.
Losses many_uses(const Batch& batch) {
  Graph& g = batch[0].graph();
  Tensor words(f32, {11, 3}), kernel(f32, {3, 4});
  for (int64_t i = 0; i < words.elements(); ++i) words.data<float>()[i] = x(i);
  for (int64_t i = 0; i < kernel.elements(); ++i) kernel.data<float>()[i] = x(i + 5);
  const Output ids = cast(floor((batch[0] + 1.0F) * 5.0F), i32);
  const Output rows =
      nn::embedding(ids, 11, 3, {.initializer = initializers::constant(words), .name = "words"});
  Output w = variable(g, "w", kernel), b = variable(g, "b", {4});
  return {.loss = mean(square(matmul(rows, w) + b - batch[0]))};
}

struct Trained {
  std::vector<float> values;
  double evaluated = 0;
};

Trained trained(const std::string& strategy, InProcessCluster& cluster, int steps = 6) {
  Program program(strategy, member(cluster, 0), Momentum(0.1), many_uses);
  const Losses again = program.made->evaluate(
      program.graph, Batch({constant(program.graph, std::vector<float>{0.25F})}), many_uses);
  TrainingSession session(program.training);
  for (int i = 0; i < steps; ++i) session.step({});
  Trained out;
  for (const char* name : {"words/embeddings", "w", "b"}) {
    const Tensor value = session.session().run(variable_named(program.graph, name));
    out.values.insert(out.values.end(), value.span<float>().begin(), value.span<float>().end());
  }
  out.evaluated = session.session().run(again.loss).item<float>();
  return out;
}

TEST(ServerSharding, ChangesNoResult) {
  for (const int workers : {1, 2}) {
    InProcessCluster cluster({{"ps", 3}, {"worker", workers}});
    const std::vector<std::string> kinds =
        workers == 2 ? std::vector<std::string>{"parameter_server:staleness=0", "sharded_state"}
                     : std::vector<std::string>{
                           "parameter_server",
                           "parameter_server:staleness=0",
                           "parameter_server:staleness=1",
                           "parameter_server:drop_stale=2",
                           "parameter_server:delay_aware=dc_asgd",
                           "parameter_server:compress=bf16",
                           "parameter_server:staleness=0:filter=significant:threshold=0",
                           "parameter_server:staleness=0:backup_workers=1"};
    for (const std::string& kind : kinds) {
      const Trained plain = trained(kind, cluster);
      for (const char* sharding :
           {"sharding=consistent_hash", "sharding=rows", "big_array_split=12",
            "sharding=consistent_hash:big_array_split=12"}) {
        const std::string strategy = concat(kind, ":", sharding);
        const Trained sharded = trained(strategy, cluster);
        ASSERT_EQ(sharded.values.size(), plain.values.size()) << strategy;
        for (size_t i = 0; i < plain.values.size(); ++i)
          EXPECT_NEAR(sharded.values[i], plain.values[i], 1e-6) << strategy << " " << i;
        EXPECT_NEAR(sharded.evaluated, plain.evaluated, 1e-6) << strategy;
      }
    }
  }
}

TEST(ServerSharding, ALookupInACutTableFetchesRowsOnly) {
  const auto strategy = make_strategy("parameter_server:staleness=0:sharding=rows",
                                      StrategyCluster(ClusterSpec::parse(
                                          R"({"cluster": {"ps": ["h:1", "h:2"],
                                                          "worker": ["h:3", "h:4"]}})")));
  Graph graph;
  strategy->minimize(graph, Sgd{0.1}, numbers(), many_uses);
  int lookups = 0;
  for (const auto& node : graph.nodes()) {
    for (const Output& input : node->inputs) {
      if (!input.node->name.starts_with("words/embeddings/part_") || !input.node->op->is_variable)
        continue;
      // Beside the part, on its server; what joins the parts does not run.
      if (node->op->name == "ConcatV2") continue;
      const auto found = node->attrs.find("_class");
      ASSERT_NE(found, node->attrs.end()) << node->name;
      EXPECT_THAT(found->second.get<std::vector<std::string>>(),
                  ElementsAre(concat("loc:@", input.node->name)));
      if (node->op->name.starts_with("Gather")) ++lookups;
    }
  }
  EXPECT_EQ(lookups, 4);  // two parts, two replicas
}

TEST(ServerSharding, CheckpointsDoNotDependOnIt) {
  const ScratchDirectory directory;
  const auto train = [&](const std::string& strategy, int ps, int64_t until) {
    InProcessCluster cluster({{"ps", ps}, {"worker", 1}});
    Program program(strategy, member(cluster, 0), Momentum(0.1), many_uses);
    TrainingSession session(program.training,
                            {.directory = directory.path(), .hooks = {stop_at(until)}});
    session.run();
    std::vector<float> out;
    for (const char* name : {"words/embeddings", "w", "b"}) {
      const Tensor value = session.session().run(variable_named(program.graph, name));
      out.insert(out.end(), value.span<float>().begin(), value.span<float>().end());
    }
    return out;
  };
  train("parameter_server:staleness=0:sharding=rows", 3, 3);
  train("parameter_server:staleness=0", 1, 5);
  train("parameter_server:staleness=0:big_array_split=12", 2, 7);
  const auto sharded = train("parameter_server:staleness=0:sharding=consistent_hash", 3, 9);
  InProcessCluster cluster({{"ps", 1}, {"worker", 1}});
  const auto plain = trained("parameter_server:staleness=0", cluster, 9).values;
  ASSERT_EQ(sharded.size(), plain.size());
  for (size_t i = 0; i < plain.size(); ++i) EXPECT_NEAR(sharded[i], plain[i], 1e-6) << i;
}

TEST(ServerSharding, ReportsMistakes) {
  const auto made = [](const std::string& options) {
    return [options] { make_strategy(concat("parameter_server:", options), {}); };
  };
  expect_error_with(Code::invalid_argument,
                    "there is no sharding 'names'; there are: bytes, consistent_hash, rows",
                    made("sharding=names"));
  expect_error_with(Code::invalid_argument, "is a positive number of elements, got 0",
                    made("big_array_split=0"));
  expect_error_with(Code::invalid_argument, "big_array_split does not go with sharding=rows",
                    made("sharding=rows:big_array_split=100"));
}

}  // namespace
}  // namespace leat
