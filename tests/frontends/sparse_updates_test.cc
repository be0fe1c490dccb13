// Updates of the rows that a step read, against the same updates of the whole table.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <optional>

#include "frontends/cpp/nn/nn.h"
#include "frontends/cpp/optimizers/gradient_clipping.h"
#include "frontends/cpp/optimizers/optimizers.h"
#include "frontends/cpp/session.h"
#include "frontends/cpp/strategies/all_reduce.h"
#include "frontends/cpp/strategies/parameter_server.h"
#include "graph/passes/pipeline.h"
#include "tests/support/in_process_cluster.h"

namespace leat {
namespace {

using testing::ElementsAre;
using testing::FloatNear;
using testing::Pointwise;

constexpr int64_t rows = 6, size = 2;

// Row r is r + 0.25, r + 0.5.
Tensor first_values() {
  Tensor out(f32, {rows, size});
  for (int64_t i = 0; i < rows * size; ++i)
    out.data<float>()[i] = static_cast<float>(i / 2) + (i % 2 == 0 ? 0.25F : 0.5F);
  return out;
}

std::vector<float> floats(const Tensor& t) {
  return {t.data<float>(), t.data<float>() + t.elements()};
}

Output make_table(Graph& graph) {
  return variable(graph, "table", {rows, size}, initializers::constant(first_values()));
}

// Reads rows as an embedding does, or as a product, whose gradient covers the whole table.
enum class Reads { rows, everything };
Output read(const Output& table, const Output& ids, Reads what) {
  if (what == Reads::rows) return take(table, ids);
  return matmul(one_hot(ids, rows), table);
}

// A loss that depends on a row's id and on its position.
Output loss_of(const Output& rows_read, const Output& ids) {
  const Output weights = reshape(cast(arange(ids.graph(), size_of(ids, i32)), f32) + 1.0, {-1, 1});
  return sum(square(rows_read - 3.0) * weights);
}

using MakeOptimizer = std::function<std::unique_ptr<Optimizer>(Output global_step)>;

// The table after a step for each list of ids.
std::vector<float> train(const MakeOptimizer& make, Reads what,
                         const std::vector<std::vector<int32_t>>& steps) {
  Graph graph;
  const Output table = make_table(graph);
  const Output step =
      variable(graph, "global_step", {}, initializers::zeros(), i64, {.trainable = false});
  const Output ids = placeholder(graph, "ids", i32, {any});
  const std::unique_ptr<Optimizer> optimizer = make(step);
  Node& update = optimizer->minimize(loss_of(read(table, ids, what), ids), {.global_step = step});
  Node& init = initialize_variables(graph);
  Session session(graph);
  session.run({init});
  for (const std::vector<int32_t>& of_step : steps) {
    const auto n = static_cast<int64_t>(of_step.size());
    session.run({{ids, Tensor::of<int32_t>({n}, std::span<const int32_t>(of_step))}}, {update});
  }
  return floats(session.run({}, {table})[0]);
}

template <class T, class Options>
MakeOptimizer with(double rate, Options options) {
  return [=](const Output&) { return std::make_unique<T>(rate, options); };
}

MakeOptimizer descent() {
  return [](const Output&) { return std::make_unique<Sgd>(0.05); };
}

auto near() { return FloatNear(2e-5F); }

struct Rule {
  const char* name;
  MakeOptimizer make;
};
std::ostream& operator<<(std::ostream& out, const Rule& rule) { return out << rule.name; }
std::string name_of(const testing::TestParamInfo<Rule>& info) { return info.param.name; }

// Rules that treat a row alike whether other rows are read or not.
class WholeRule : public testing::TestWithParam<Rule> {};

TEST_P(WholeRule, EqualsADenseGradientThatIsZeroElsewhere) {
  const std::vector<std::vector<int32_t>> steps = {{1, 4, 1}, {0, 4}, {1}, {3, 3, 3, 0}};
  EXPECT_THAT(train(GetParam().make, Reads::rows, steps),
              Pointwise(near(), train(GetParam().make, Reads::everything, steps)));
}

INSTANTIATE_TEST_SUITE_P(
    All, WholeRule,
    testing::Values(Rule{"Sgd", descent()}, Rule{"Adagrad", with<Adagrad>(0.1, AdagradOptions{})},
                    Rule{"Adam", with<Adam>(0.1, AdamOptions{})},
                    Rule{"AdamW", with<AdamW>(0.1, AdamWOptions{.weight_decay = 0.1})},
                    Rule{"Adamax", with<Adamax>(0.1, AdamaxOptions{})},
                    Rule{"AddSign", with<AddSign>(0.05, AddSignOptions{})},
                    Rule{"PowerSign", with<PowerSign>(0.05, PowerSignOptions{})}),
    name_of);

// Rules whose rows change only when they are read.
class RowRule : public testing::TestWithParam<Rule> {};

TEST_P(RowRule, KeepsUnreadRows) {
  const std::vector<std::vector<int32_t>> steps = {{1, 4, 1}, {4, 1}, {1, 1, 4}};
  const std::vector<float> got = train(GetParam().make, Reads::rows, steps);
  const std::vector<float> whole = train(GetParam().make, Reads::everything, steps);
  const std::vector<float> before = floats(first_values());
  for (size_t row = 0; row < rows; ++row) {
    const std::vector<float>& expected = row == 1 || row == 4 ? whole : before;
    for (size_t i = row * size; i < (row + 1) * size; ++i) {
      EXPECT_NEAR(got[i], expected[i], 2e-5F) << "row " << row;
      EXPECT_EQ(got[i] == before[i], &expected == &before) << "row " << row;
    }
  }
}

MakeOptimizer adagrad_da() {
  return [](const Output& step) {
    return std::make_unique<AdagradDA>(0.5, step, AdagradDAOptions{.l1 = 0.01, .l2 = 0.1});
  };
}

INSTANTIATE_TEST_SUITE_P(
    All, RowRule,
    testing::Values(
        Rule{"Sgd", descent()}, Rule{"AdagradDA", adagrad_da()},
        Rule{"Adagrad", with<Adagrad>(0.1, AdagradOptions{})},
        Rule{"Momentum", with<Momentum>(0.02, MomentumOptions{})},
        Rule{"Nesterov", with<Momentum>(0.02, MomentumOptions{.nesterov = true})},
        Rule{"Adadelta", with<Adadelta>(1.0, AdadeltaOptions{.epsilon = 1e-2})},
        Rule{"RmsProp", with<RmsProp>(0.02, RmsPropOptions{.momentum = 0.5})},
        Rule{"CenteredRmsProp", with<RmsProp>(0.02, RmsPropOptions{.centered = true})},
        Rule{"LazyAdam", with<Adam>(0.1, AdamOptions{.lazy = true})},
        Rule{"LazyAdamW", with<AdamW>(0.1, AdamWOptions{.weight_decay = 0.1, .lazy = true})},
        Rule{"Ftrl", with<Ftrl>(0.3, FtrlOptions{.l1 = 0.01, .l2 = 0.1})},
        Rule{"FtrlWithShrinkage", with<Ftrl>(0.3, FtrlOptions{.l2_shrinkage = 0.1})},
        Rule{"ProximalGradientDescent",
             with<ProximalGradientDescent>(0.02, ProximalOptions{.l1 = 0.1, .l2 = 0.1})},
        Rule{"ProximalAdagrad",
             with<ProximalAdagrad>(0.3, ProximalAdagradOptions{.l1 = 0.1, .l2 = 0.1})}),
    name_of);

TEST_P(RowRule, MakesNoTensorOfTheTablesSize) {
  Graph graph;
  const Output table = make_table(graph);
  const Output step =
      variable(graph, "global_step", {}, initializers::zeros(), i64, {.trainable = false});
  const Output ids = placeholder(graph, "ids", i32, {any});
  GetParam().make(step)->minimize(loss_of(take(table, ids), ids));
  for (const auto& node : graph.nodes()) {
    for (const OutputSpec& output : node->outputs) {
      const bool is_state = node->name.starts_with("table") || node->output().is_ref();
      EXPECT_FALSE(!is_state && output.shape == table.shape()) << node->name;
    }
  }
}

// unique() returns one index for equal ids, so its indices repeat.
TEST(SparseUpdates, AcceptRepeatedIndicesFromUnique) {
  const auto learn = [](Reads what) {
    Graph graph;
    const Output table = make_table(graph);
    const Output ids = unique(constant(graph, {9, 7, 9})).indices;
    Node& update = Momentum(0.05).minimize(loss_of(read(table, ids, what), ids));
    Session session(graph);
    session.run(initialize_variables(graph));
    session.run(update);
    return floats(session.run(table));
  };
  EXPECT_THAT(learn(Reads::rows), Pointwise(near(), learn(Reads::everything)));
}

TEST(SparseUpdates, ClipTheSumsOfRows) {
  using Transform = GradientTransform;
  const auto clipped = [](const Transform& transform) {
    return [=](const Output&) {
      auto out = std::make_unique<Sgd>(1.0);
      out->set_gradient_transform(transform);
      return out;
    };
  };
  const std::vector<std::vector<int32_t>> steps = {{1, 4, 1}, {0, 0}};
  for (const Transform& transform :
       {Transform([](auto g) { return clip_by_global_norm(std::move(g), 0.5); }),
        Transform([](auto g) { return clip_by_norm(std::move(g), 0.5); }),
        Transform([](auto g) { return clip_by_value(std::move(g), -0.5, 0.25); })}) {
    const std::vector<float> got = train(clipped(transform), Reads::rows, steps);
    EXPECT_THAT(got, Pointwise(near(), train(clipped(transform), Reads::everything, steps)));
    EXPECT_THAT(got, testing::Not(Pointwise(near(), train(descent(), Reads::rows, steps))));
  }
}

TEST(SparseUpdates, SumsOfSparseGradientsStaySparse) {
  Graph graph;
  const Output table = make_table(graph);
  const Output values = constant(graph, {{1.0F, 2.0F}, {3.0F, 4.0F}});
  const GradientAndVariable of_rows{values, table, constant(graph, {4, 1})};
  const GradientAndVariable wide{values, table, cast(constant(graph, {1, 1}), i64)};
  const GradientAndVariable whole{constant(graph, first_values()), table};
  const GradientAndVariable sum = sum_of({of_rows, wide}), mixed = sum_of({of_rows, whole});
  ASSERT_TRUE(sum.indices);
  EXPECT_EQ(sum.indices.dtype(), i64);
  EXPECT_FALSE(mixed.indices);
  const GradientAndVariable once = sum_repeated(sum);
  Session session(graph);
  const std::vector<Tensor> got =
      session.run({}, {once.gradient, once.indices, densify(sum).gradient, mixed.gradient});
  EXPECT_THAT(floats(got[0]), ElementsAre(1, 2, 7, 10));
  EXPECT_THAT(std::vector<int64_t>(got[1].data<int64_t>(), got[1].data<int64_t>() + 2),
              ElementsAre(4, 1));
  EXPECT_THAT(floats(got[2]), ElementsAre(0, 0, 7, 10, 0, 0, 0, 0, 1, 2, 0, 0));
  EXPECT_THAT(floats(got[3]), ElementsAre(0.25, 0.5, 1.25 + 3, 1.5 + 4, 2.25, 2.5, 3.25, 3.5,
                                          4.25 + 1, 4.5 + 2, 5.25, 5.5));
}

// A table that several replicas train, each on its own rows.
struct Program {
  // All replicas read the same table.
  Program(const ParameterServer& strategy, const Optimizer& optimizer) {
    std::optional<nn::Embedding> layer;
    std::vector<Output> losses;
    for (int k = 0; k < strategy.workers(); ++k) {
      const auto replica = strategy.replica(graph, k);
      if (!layer) layer = make_layer(graph);
      losses.push_back(make_loss(*layer));
    }
    train = &strategy.minimize(optimizer, losses);
    init = &initialize_variables(graph);
  }
  // Each replica has its own table.
  Program(const AllReduce& strategy, const Optimizer& optimizer) {
    std::vector<Output> losses;
    for (int k = 0; k < strategy.workers(); ++k) {
      const auto replica = strategy.replica(graph, k);
      losses.push_back(make_loss(make_layer(graph)));
    }
    train = &strategy.minimize(optimizer, losses);
    init = &initialize_variables(graph);
  }
  // The same without a strategy: the sum of all losses divided by the number of replicas.
  Program(int replicas, const Optimizer& optimizer) {
    Output table, sum;
    for (int k = 0; k < replicas; ++k) {
      ids.push_back(placeholder(graph, "ids", i32, {any}));
      if (!table) table = make_table(graph);
      const Output loss = loss_of(matmul(one_hot(ids.back(), rows), table), ids.back());
      sum = sum ? sum + loss : loss;
    }
    train = &optimizer.minimize(sum / static_cast<double>(replicas));
    init = &initialize_variables(graph);
  }
  static nn::Embedding make_layer(Graph& graph) {
    return {graph,
            rows,
            size,
            {.initializer = initializers::constant(first_values()), .name = "table"}};
  }
  Output make_loss(const nn::Embedding& layer) {
    ids.push_back(placeholder(graph, "ids", i32, {any}));
    return loss_of(layer(ids.back()), ids.back());
  }
  std::vector<float> learn(Session& session, std::string_view table) {
    session.run({*init});
    for (int32_t i = 0; i < 4; ++i) {
      Feeds feeds;
      for (size_t k = 0; k < ids.size(); ++k) {
        const auto own = static_cast<int32_t>(k);
        feeds.push_back({ids[k], Tensor::of<int32_t>({3}, {i, own, own + 1})});
      }
      session.run(feeds, {*train});
    }
    return floats(session.run({}, {graph.find(table)->output()})[0]);
  }

  Graph graph;
  std::vector<Output> ids;
  Node *train = nullptr, *init = nullptr;
};

std::vector<float> learnt_here(const Optimizer& optimizer) {
  Program here(2, optimizer);
  Session session(here.graph);
  return here.learn(session, "table");
}

TEST(SparseUpdates, ParameterServerTrainsWithTheMeanOfTheRows) {
  InProcessCluster cluster({{"ps", 1}, {"worker", 2}});
  for (const std::shared_ptr<Optimizer>& optimizer :
       {std::shared_ptr<Optimizer>(std::make_shared<Sgd>(0.05)),
        std::shared_ptr<Optimizer>(std::make_shared<Adagrad>(0.1)),
        std::shared_ptr<Optimizer>(std::make_shared<Adam>(0.1))}) {
    Program there(ParameterServer(cluster.spec()), *optimizer);
    Session session(there.graph, {.target = cluster.target("worker", 0)});
    EXPECT_THAT(there.learn(session, "table/embeddings"),
                Pointwise(near(), learnt_here(*optimizer)));
  }
}

TEST(SparseUpdates, AllReduceTrainsWithTheMeanOfTheRows) {
  InProcessCluster cluster({{"worker", 2}});
  const Adagrad optimizer(0.1);
  Program there(AllReduce(cluster.spec()), optimizer);
  Session session(there.graph, {.target = cluster.target("worker", 0)});
  const std::vector<float> first = there.learn(session, "table/embeddings");
  EXPECT_THAT(first, Pointwise(near(), learnt_here(optimizer)));
  Node* copy = there.graph.find("worker_1/table/embeddings");
  EXPECT_THAT(floats(session.run({}, {copy->output()})[0]), testing::ElementsAreArray(first));
}

TEST(SparseUpdates, OnlyRowsCrossToAParameterServer) {
  const auto cluster =
      ClusterSpec::parse(R"({"cluster": {"ps": ["h:1"], "worker": ["h:2", "h:3"]}})");
  Program program(ParameterServer(cluster), Adagrad(0.1));
  PipelineOptions options;
  for (const Output& ids : program.ids) options.signature.feeds.push_back(ids.name());
  options.signature.targets = {program.train->name};
  for (const char* task : {"/job:ps/replica:0/task:0", "/job:worker/replica:0/task:0",
                           "/job:worker/replica:0/task:1"}) {
    options.placement.devices.push_back(
        {DeviceName::parse(concat(task, "/device:CPU:0")), DeviceType::cpu});
  }
  options.placement.default_device = options.placement.devices[1].name;
  const PartitionedGraph step = run_pipeline(program.graph, options);
  int of_rows = 0;
  for (const CutEdge& edge : step.edges) {
    if (edge.dtype != f32) continue;
    EXPECT_EQ(edge.shape, Shape({any, size})) << edge.source << " to " << edge.destination;
    ++of_rows;
  }
  EXPECT_EQ(of_rows, 4) << "rows to each worker, and their gradients back";
}

}  // namespace
}  // namespace leat
