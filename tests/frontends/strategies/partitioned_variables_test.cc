#include "frontends/cpp/strategies/parts/partitioned_variables.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>

#include "frontends/cpp/optimizers/moving_average.h"
#include "frontends/cpp/optimizers/optimizers.h"
#include "frontends/cpp/session.h"
#include "tests/support/expect_error.h"

namespace leat {
namespace {

using partitioners::fixed_size;
using testing::ElementsAre;

std::vector<float> floats_of(const Tensor& t) {
  return {t.data<float>(), t.data<float>() + t.elements()};
}

Tensor counted(const Shape& shape) {
  Tensor out(f32, shape);
  for (int64_t i = 0; i < out.elements(); ++i) out.data<float>()[i] = static_cast<float>(i);
  return out;
}

TEST(PartitionedVariable, IsPartitionedAsInTensorFlow) {
  Graph graph;
  const NameScope layer(graph, "layer");
  const auto table = partitioned_variable(graph, "table", {7, 3}, fixed_size(3));
  EXPECT_EQ(table.name(), "layer/table");
  EXPECT_EQ(table.shape(), Shape({7, 3}));
  ASSERT_EQ(table.parts().size(), 3U);
  const std::vector<std::string> slices = {"7 3 0,3:0,3", "7 3 3,2:0,3", "7 3 5,2:0,3"};
  for (size_t i = 0; i < 3; ++i) {
    const Output part = table.parts()[i];
    EXPECT_EQ(part.node->name, concat("layer/table/part_", i));
    EXPECT_EQ(part.shape(), Shape({i == 0 ? 3 : 2, 3}));
    EXPECT_EQ(part_of(part)->text(), slices[i]);
    EXPECT_EQ(checkpoint_name(part), "layer/table");
  }
  for (const char* collection : {"variables", "trainable_variables"}) {
    const std::vector<Output>& variables = graph.collection(collection);
    EXPECT_TRUE(std::equal(variables.begin(), variables.end(), table.parts().begin(),
                           table.parts().end(), same))
        << collection;
  }
  const auto second = partitioned_variable(graph, "table", {2}, fixed_size(2), initializers::ones(),
                                           f64, {.trainable = false, .shared_name = "both"});
  EXPECT_EQ(second.name(), "layer/table_1");
  EXPECT_EQ(second.dtype(), f64);
  EXPECT_EQ(second.parts()[1].node->attr<std::string>("shared_name"), "both/part_1");
  EXPECT_EQ(graph.collection("trainable_variables").size(), 3U);
}

TEST(PartitionedVariable, IsReadAsAWhole) {
  for (const int axis : {0, 1}) {
    for (const int64_t parts : {1, 2, 3}) {
      Graph graph;
      const Tensor value = counted({7, 3});
      const auto table = partitioned_variable(graph, "table", {7, 3}, fixed_size(parts, axis),
                                              initializers::constant(value));
      const Output whole = table.value();
      EXPECT_EQ(whole.shape(), Shape({7, 3}));
      Node& init = initialize_variables(graph);
      Session session(graph);
      session.run({init});
      EXPECT_EQ(floats_of(session.run({}, {whole})[0]), floats_of(value)) << axis << " " << parts;
    }
  }
}

TEST(PartitionedVariable, MayHaveNoRows) {
  Graph graph;
  const auto table = partitioned_variable(graph, "table", {0, 3}, fixed_size(1));
  Node& init = initialize_variables(graph);
  const Output whole = table.value();
  Session session(graph);
  session.run({init});
  EXPECT_EQ(session.run({}, {whole})[0].shape(), Shape({0, 3}));
}

TEST(PartitionedVariable, EachPartHasItsOwnValue) {
  Graph graph;
  std::vector<Shape> seen;
  const Initializer of_part_shape = [&](Graph& g, DType dtype, const Shape& shape) {
    seen.push_back(shape);
    return constant(g, Tensor(dtype, shape));
  };
  partitioned_variable(graph, "a", {5, 2}, fixed_size(2), of_part_shape);
  EXPECT_THAT(seen, ElementsAre(Shape({3, 2}), Shape({2, 2})));

  const auto drawn = partitioned_variable(graph, "b", {4, 2}, fixed_size(2),
                                          initializers::random_uniform(0, 1, 7));
  Node& init = initialize_variables(graph);
  Session session(graph);
  session.run({init});
  const std::vector<Tensor> parts = session.run({}, drawn.parts());
  EXPECT_NE(floats_of(parts[0]), floats_of(parts[1]));
  Session again(graph);
  again.run({init});
  EXPECT_EQ(floats_of(again.run({}, {drawn.parts()[1]})[0]), floats_of(parts[1])) << "seeded";
}

TEST(PartitionedVariable, UsesTheFansOfTheWholeVariable) {
  Graph graph;
  constexpr int parts = 50;  // one step locks all of them, and ThreadSanitizer follows 64 locks
  const auto table = partitioned_variable(graph, "table", {400, 2}, fixed_size(parts),
                                          initializers::glorot_uniform({.seed = 3}));
  Node& init = initialize_variables(graph);
  const Output largest = max(abs(table.value()));
  Session session(graph);
  session.run({init});
  const double limit = std::sqrt(6.0 / 402);  // 0.77 for a single part
  EXPECT_NEAR(session.run({}, {largest})[0].item<float>(), limit, limit * 0.01);
}

TEST(PartitionedVariable, SlotsAndAveragesOfAPartAreParts) {
  Graph graph;
  const auto table = partitioned_variable(graph, "table", {3, 2}, fixed_size(2));
  RmsProp(0.1).minimize(sum(square(table.value())));
  ExponentialMovingAverage averages(0.5);
  averages.apply(graph);
  const std::map<std::string, std::string> expected = {
      {"table/part_1", "table"},
      {"table/part_1/RMSProp", "table/RMSProp"},
      {"table/part_1/RMSProp_1", "table/RMSProp_1"},
      {"table/part_1/ExponentialMovingAverage", "table/ExponentialMovingAverage"}};
  for (const auto& [name, whole] : expected) {
    ASSERT_NE(graph.find(name), nullptr) << name;
    EXPECT_EQ(checkpoint_name(graph.find(name)->output()), whole);
    EXPECT_EQ(part_of(graph.find(name)->output())->text(), "3 2 2,1:0,2");
  }
  const auto restored = averages.variables_to_restore(graph);
  EXPECT_EQ(restored.count("table/ExponentialMovingAverage"), 2U);
  EXPECT_EQ(restored.count("table"), 0U);
}

TEST(PartitionedVariable, LearnsLikeAnOrdinaryVariable) {
  const std::vector<std::pair<std::string, std::shared_ptr<Optimizer>>> optimizers = {
      {"sgd", std::make_shared<Sgd>(0.1)},
      {"momentum", std::make_shared<Momentum>(0.1)},
      {"adagrad", std::make_shared<Adagrad>(0.1)},
      {"rmsprop", std::make_shared<RmsProp>(0.1, RmsPropOptions{.momentum = 0.5})},
      {"adam", std::make_shared<Adam>(0.1)}};
  const auto train = [](const Optimizer& optimizer, int64_t parts) {
    Graph graph;
    const auto start = initializers::constant(counted({5, 2}));
    Output value;
    if (parts == 0) {
      value = variable(graph, "table", {5, 2}, start);
    } else {
      value = partitioned_variable(graph, "table", {5, 2}, fixed_size(parts), start).value();
    }
    Node& step = optimizer.minimize(sum(square(value - 3.0)));
    Node& init = initialize_variables(graph);
    Session session(graph);
    session.run({init});
    for (int i = 0; i < 10; ++i) session.run({step});
    return floats_of(session.run({}, {value})[0]);
  };
  for (const auto& [name, optimizer] : optimizers) {
    const std::vector<float> expected = train(*optimizer, 0);
    for (const int64_t parts : {1, 3})
      EXPECT_EQ(train(*optimizer, parts), expected) << name << " in " << parts << " parts";
  }
}

TEST(PartitionedVariable, ReportsMistakes) {
  Graph graph;
  const auto expect = [&](const Shape& shape, const Partitioner& partitioner,
                          std::string_view part) {
    expect_error_with(Code::invalid_argument, part,
                      [&] { partitioned_variable(graph, "table", shape, partitioner); });
  };
  expect({any, 3}, fixed_size(2), "): its shape [?,3] is not complete: give every extent");
  expect(Shape::unknown(), fixed_size(2), "its shape <unknown> is not complete");
  expect({}, fixed_size(1), "): a scalar has no axis to cut: make it with variable()");
  expect({3}, nullptr, "): its partitioner is empty: give one of partitioners.h");
  expect({3}, fixed_size(2, 1),
         "): its partitioner cuts axis 1, but the shape is [3]: give an axis in [0, 1)");
  expect({3}, fixed_size(2, -1), "give an axis in [0, 1)");
  expect(
      {3},
      [](const Shape&, DType) {
        return Partitioning{0, 0};
      },
      "): its partitioner makes 0 parts: give 1 or more");
  expect({3, 9}, fixed_size(4),
         "): its partitioner makes 4 parts, but axis 0 of [3,9] has the extent 3: give at most "
         "that many parts");
  expect_error_with(Code::invalid_argument,
                    "): the initial value is float[3] but the variable is float[4]", [&] {
                      partitioned_variable(graph, "table", {4}, fixed_size(2),
                                           initializers::constant(counted({3})));
                    });
  expect_error_with(Code::invalid_argument, "is the part 0,2 of 'whole' [4], but its shape is [3]",
                    [&] {
                      VariableOptions options;
                      options.part.emplace("whole", Shape{4}, TensorSlice{{{0, 2}}});
                      variable(graph, "part", {3}, initializers::zeros(), f32, options);
                    });
}

}  // namespace
}  // namespace leat
