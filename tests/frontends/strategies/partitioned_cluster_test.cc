// A variable partitioned over two parameter servers, as programs train it.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "frontends/cpp/strategies/parameter_server.h"
#include "frontends/cpp/strategies/parts/embedding_lookup.h"
#include "frontends/cpp/training/saver.h"
#include "tests/support/in_process_cluster.h"
#include "tests/support/scratch_directory.h"

namespace leat {
namespace {

using testing::ElementsAre;

constexpr int64_t rows = 9;

std::vector<float> floats_of(const Tensor& t) {
  return {t.data<float>(), t.data<float>() + t.elements()};
}

// Rows that learn to be 1; a row's value depends on how often the program read it.
struct Program {
  Graph graph;
  std::vector<Output> parts;
  Output ids, value;
  Node *train = nullptr, *init = nullptr;

  void build(int64_t count, const std::function<Node&(const Optimizer&, Output)>& minimize) {
    Tensor start(f32, {rows, 2});
    for (int64_t i = 0; i < 2 * rows; ++i) start.data<float>()[i] = static_cast<float>(i);
    const auto table = partitioned_variable(
        graph, "table", {rows, 2}, partitioners::fixed_size(count), initializers::constant(start));
    parts = table.parts();
    value = table.value();
    ids = placeholder(graph, "ids", i32, {any});
    train = &minimize(Momentum(0.1), sum(square(embedding_lookup(table, ids) - 1.0)));
    init = &initialize_variables(graph);
  }
  std::vector<float> learn(Session& session, int steps) {
    for (int i = 0; i < steps; ++i)
      session.run({{ids, Tensor::of<int32_t>({4}, {0, i % 9, 8, 8})}}, {*train});
    return floats_of(session.run({}, {value})[0]);
  }
};

class PartitionedCluster : public testing::Test {
 protected:
  PartitionedCluster() : cluster_({{"ps", 2}, {"worker", 1}}) {}

  void build_on_cluster(Program& program, int64_t parts) {
    const ParameterServer strategy(cluster_.spec());
    const ReplicaScope replica = strategy.replica(program.graph, 0);
    program.build(parts, [&](const Optimizer& optimizer, Output loss) -> Node& {
      return strategy.minimize(optimizer, loss);
    });
  }
  static void build_here(Program& program, int64_t parts) {
    program.build(parts, [](const Optimizer& optimizer, Output loss) -> Node& {
      return optimizer.minimize(loss);
    });
  }

  InProcessCluster cluster_;
};

TEST_F(PartitionedCluster, PlacesPartsWhereTheFewestBytesAre) {
  Program program;
  build_on_cluster(program, 4);  // of 3, 2, 2 and 2 rows
  std::vector<int> tasks;
  for (const Output& part : program.parts) {
    EXPECT_EQ(part.node->requested_device->job, "ps");
    tasks.push_back(*part.node->requested_device->task);
  }
  EXPECT_THAT(tasks, ElementsAre(0, 1, 1, 0));
}

TEST_F(PartitionedCluster, LearnsLikeOneProcess) {
  Program here, there;
  build_here(here, 1);
  build_on_cluster(there, 4);
  Session local(here.graph), remote(there.graph, {.target = cluster_.target("worker", 0)});
  local.run({*here.init});
  remote.run({*there.init});
  EXPECT_EQ(there.learn(remote, 12), here.learn(local, 12));
}

TEST_F(PartitionedCluster, OneCheckpointServesAllPartitionings) {
  const ScratchDirectory directory;
  std::string prefix;
  std::vector<float> expected;
  {
    Program writer;
    build_on_cluster(writer, 4);
    Saver saver(writer.graph);
    Session session(writer.graph, {.target = cluster_.target("worker", 0)});
    session.run({*writer.init});
    writer.learn(session, 5);
    prefix = saver.save(session, directory.path(), 5);
    expected = writer.learn(session, 3);
  }
  EXPECT_TRUE(std::filesystem::exists(prefix + ".data-00001-of-00002")) << "each ps writes its own";
  for (const int64_t parts : {1, 3}) {
    for (const int ps : {0, 1}) cluster_.restart("ps", ps);  // its variables have other shapes
    Program here, there;
    build_here(here, parts);
    build_on_cluster(there, parts + 1);
    const Saver of_here(here.graph), of_there(there.graph);
    Session local(here.graph), remote(there.graph, {.target = cluster_.target("worker", 0)});
    of_here.restore(local, prefix);
    EXPECT_EQ(here.learn(local, 3), expected) << parts << " parts, here";
    of_there.restore(remote, prefix);
    EXPECT_EQ(there.learn(remote, 3), expected) << parts + 1 << " parts, on two ps";
  }
}

}  // namespace
}  // namespace leat
