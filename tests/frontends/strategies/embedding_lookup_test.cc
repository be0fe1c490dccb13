#include "frontends/cpp/strategies/parts/embedding_lookup.h"

#include <gtest/gtest.h>

#include "frontends/cpp/nn/nn.h"
#include "frontends/cpp/optimizers/optimizers.h"
#include "frontends/cpp/session.h"
#include "tests/support/expect_error.h"

namespace leat {
namespace {

using partitioners::fixed_size;

std::vector<float> floats_of(const Tensor& t) {
  return {t.data<float>(), t.data<float>() + t.elements()};
}

// A table [rows, 2]; row r is r + 0.25, r + 0.5.
Tensor numbered(int64_t rows) {
  Tensor out(f32, {rows, 2});
  for (int64_t i = 0; i < 2 * rows; ++i)
    out.data<float>()[i] = static_cast<float>(i / 2) + (i % 2 == 0 ? 0.25F : 0.5F);
  return out;
}

PartitionedVariable numbered_table(Graph& graph, int64_t rows, int64_t parts) {
  return partitioned_variable(graph, "table", {rows, 2}, fixed_size(parts),
                              initializers::constant(numbered(rows)));
}

TEST(EmbeddingLookup, DivStrategyIndexesRowsOfTheWholeTable) {
  for (const int64_t rows : {1, 4, 7, 12}) {
    for (int64_t parts = 1; parts <= rows; ++parts) {
      Graph graph;
      const auto table = numbered_table(graph, rows, parts);
      const Output ids = placeholder(graph, "ids", DType::i64, {any});
      const Output found = embedding_lookup(table, ids);
      EXPECT_EQ(found.shape(), Shape({any, 2}));
      Node& init = initialize_variables(graph);
      Session session(graph);
      session.run({init});
      Tensor all(DType::i64, {rows});
      for (int64_t i = 0; i < rows; ++i) all.data<int64_t>()[i] = i;
      EXPECT_EQ(floats_of(session.run({{ids, all}}, {found})[0]), floats_of(numbered(rows)))
          << rows << " rows in " << parts << " parts";
    }
  }
}

TEST(EmbeddingLookup, ModStrategySpreadsNeighboursOverParts) {
  Graph graph;
  const auto table = numbered_table(graph, 7, 3);  // rows [0 1 2] [3 4] [5 6]
  const Output ids = placeholder(graph, "ids", i32, {7});
  const Output found = embedding_lookup(table, ids, PartitionStrategy::mod);
  EXPECT_EQ(found.shape(), Shape({7, 2}));
  Node& init = initialize_variables(graph);
  Session session(graph);
  session.run({init});
  const Tensor rows =
      session.run({{ids, Tensor::of<int32_t>({7}, {0, 1, 2, 3, 4, 5, 6})}}, {found})[0];
  const std::vector<float> expected = {0, 3, 5, 1, 4, 6, 2};
  for (size_t i = 0; i < expected.size(); ++i)
    EXPECT_EQ(rows.data<float>()[2 * i], expected[i] + 0.25F) << "id " << i;
}

TEST(EmbeddingLookup, TakesIdsOfAnyShape) {
  Graph graph;
  const auto table = numbered_table(graph, 5, 2);
  const Output ids = placeholder(graph, "ids", i32, {any, 2});
  const Output one = placeholder(graph, "one", i32, {});
  const Output found = embedding_lookup(table, ids), row = embedding_lookup(table, one);
  EXPECT_EQ(found.shape(), Shape({any, 2, 2}));
  EXPECT_EQ(row.shape(), Shape({2}));
  Node& init = initialize_variables(graph);
  Session session(graph);
  session.run({init});
  const Tensor some = session.run({{ids, Tensor::of<int32_t>({2, 2}, {4, 0, 4, 2})}}, {found})[0];
  EXPECT_EQ(some.shape(), Shape({2, 2, 2}));
  EXPECT_EQ(floats_of(some), (std::vector<float>{4.25, 4.5, 0.25, 0.5, 4.25, 4.5, 2.25, 2.5}));
  EXPECT_EQ(session.run({{ids, Tensor(i32, {0, 2})}}, {found})[0].shape(), Shape({0, 2, 2}));
  EXPECT_EQ(floats_of(session.run({{one, Tensor::scalar<int32_t>(3)}}, {row})[0]),
            (std::vector<float>{3.25, 3.5}));
}

TEST(EmbeddingLookup, LearnsLikeAnEmbedding) {
  const Tensor wanted = Tensor::of<int32_t>({2, 2}, {4, 0, 4, 2});
  const auto train = [&](const std::function<Output(Graph&, Output)>& look_up,
                         const Optimizer& optimizer) {
    Graph graph;
    const Output ids = placeholder(graph, "ids", i32, {any, 2});
    const Output rows = look_up(graph, ids);
    Node& step = optimizer.minimize(sum(square(rows - 1.0)));
    Node& init = initialize_variables(graph);
    Session session(graph);
    session.run({init});
    for (int i = 0; i < 5; ++i) session.run({{ids, wanted}}, {step});
    return floats_of(
        session.run({{ids, Tensor::of<int32_t>({3, 2}, {0, 1, 2, 3, 4, 4})}}, {rows})[0]);
  };
  const auto in_parts = [](Graph& graph, Output ids) {
    return embedding_lookup(numbered_table(graph, 5, 3), ids);
  };
  const auto in_one = [](Graph& graph, Output ids) {
    return nn::Embedding(
        graph, 5, 2, {.initializer = initializers::constant(numbered(5)), .name = "table"})(ids);
  };
  EXPECT_EQ(train(in_parts, Sgd(0.1)), train(in_one, Sgd(0.1)));
  EXPECT_EQ(train(in_parts, Momentum(0.1)), train(in_one, Momentum(0.1)));
  EXPECT_EQ(train(in_parts, Adam(0.1)), train(in_one, Adam(0.1)));
}

TEST(EmbeddingLookup, GathersOnTheDevicesOfTheParts) {
  Graph graph;
  const DeviceScope on(graph, "/job:worker");
  const auto table = numbered_table(graph, 5, 2);
  const Output found = embedding_lookup(table, placeholder(graph, "ids", i32, {any}));
  gradients({sum(found)}, table.parts());
  int gathers = 0;
  for (const auto& node : graph.nodes()) {
    const auto with = node->attrs.find("_class");
    const bool is_beside = with != node->attrs.end();
    const bool moves_rows = node->is("DynamicStitch") || node->is("DynamicPartition");
    EXPECT_FALSE(moves_rows && is_beside) << node->name;
    const bool reads_part = node->is("GatherV2") && node->inputs[0].is_ref();
    if (!reads_part && !node->is("UnsortedSegmentSum")) continue;
    EXPECT_TRUE(is_beside) << node->name;
    ++gathers;
  }
  EXPECT_EQ(gathers, 4) << "one and its gradient for each part";
}

TEST(EmbeddingLookup, ReportsMistakes) {
  Graph graph, other;
  const auto table = numbered_table(graph, 5, 2);
  const auto look_up = [&](const PartitionedVariable& where, Output ids) {
    return [&where, ids] { embedding_lookup(where, ids); };
  };
  expect_error_with(Code::invalid_argument, "in 'table' needs ids, int32 or int64, got none",
                    look_up(table, {}));
  expect_error_with(Code::invalid_argument, "needs ids, int32 or int64, got x:0 float",
                    look_up(table, placeholder(graph, "x", f32, {2})));
  expect_error_with(Code::invalid_argument, "): the ids 'ids:0' are in another graph than 'table'",
                    look_up(table, placeholder(other, "ids", i32, {2})));
  const auto by_columns = partitioned_variable(graph, "columns", {5, 2}, fixed_size(2, 1));
  const Output ids = placeholder(graph, "ids", i32, {any});
  expect_error_with(Code::invalid_argument,
                    "): 'columns' [5,2] is cut along axis 1, so no part has a whole row: cut it "
                    "along axis 0",
                    look_up(by_columns, ids));

  const Output in_order = embedding_lookup(table, ids),
               in_turns = embedding_lookup(table, ids, PartitionStrategy::mod);
  Node& init = initialize_variables(graph);
  Session session(graph);
  session.run({init});
  for (const int32_t id : {-1, 5, 1000}) {
    for (const Output& found : {in_order, in_turns}) {
      expect_error_with(Code::invalid_argument, "is not in [0, ", [&] {
        session.run({{ids, Tensor::of<int32_t>({2}, {0, id})}}, {found});
      });
    }
  }
}

}  // namespace
}  // namespace leat
