// Variables made with use_resource: programs use them like reference variables, and get the same
// numbers.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "frontends/cpp/control_flow/cond.h"
#include "frontends/cpp/nn/nn.h"
#include "frontends/cpp/optimizers/gradient_clipping.h"
#include "frontends/cpp/optimizers/moving_average.h"
#include "frontends/cpp/optimizers/optimizers.h"
#include "frontends/cpp/session.h"
#include "frontends/cpp/strategies/all_reduce.h"
#include "frontends/cpp/strategies/parameter_server.h"
#include "frontends/cpp/strategies/parts/embedding_lookup.h"
#include "frontends/cpp/training/readiness.h"
#include "frontends/cpp/training/saver.h"
#include "graph/formats/checkpoint.h"
#include "graph/variable_node.h"
#include "tests/support/expect_error.h"
#include "tests/support/in_process_cluster.h"
#include "tests/support/scratch_directory.h"

namespace leat {
namespace {

using testing::ElementsAre;

std::vector<float> floats(const Tensor& t) {
  return {t.data<float>(), t.data<float>() + t.elements()};
}

Initializer counted(float step) {
  return [step](Graph& graph, DType, const Shape& shape) {
    Tensor out(f32, shape);
    for (int64_t i = 0; i < out.elements(); ++i)
      out.data<float>()[i] = step * static_cast<float>(i % 7) - 0.4F;
    return constant(graph, out);
  };
}

// What assign() returns is the new value, and the node that makes it, for both kinds of variables.
TEST(VariableUpdates, AreValuesAndNodes) {
  for (const bool use_resource : {false, true}) {
    Graph graph;
    const Output w = variable(graph, "w", Tensor::full({2}, 1.0F), {.use_resource = use_resource});
    Node& doubled = assign(w, w * 2.0F);
    const Output more = assign_add(w, 10.0F);
    Session session(graph);
    session.initialize();
    session.run(doubled);
    EXPECT_THAT(floats(session.run(w)), ElementsAre(2, 2));
    EXPECT_THAT(floats(session.run(more)), ElementsAre(12, 12));
    session.run({doubled});
    EXPECT_THAT(floats(session.run(assign_sub(w, 4.0F))), ElementsAre(20, 20));
    const Output chosen = cond(
        constant(graph, true), [&] { return assign(w, 3.0F); }, [&] { return w * 1.0F; });
    EXPECT_THAT(floats(session.run(chosen)), ElementsAre(3, 3));
  }
}

using MakeOptimizer = std::function<std::unique_ptr<Optimizer>(Output global_step)>;

// Rows of a table, a layer, and a loss, with variables of either kind.
struct Model {
  explicit Model(Graph& graph, bool use_resource) {
    table =
        nn::Embedding(graph, 6, 3,
                      {.initializer = counted(0.3F), .use_resource = use_resource, .name = "words"})
            .embeddings();
    w = variable(graph, "w", {3, 2}, counted(0.2F), f32, {.use_resource = use_resource});
    b = variable(graph, "b", {2}, VariableOptions{.use_resource = use_resource});
  }
  Output loss(const Output& ids) const {
    return mean(square(matmul(take(table, ids), w) + b - 1.0));
  }
  Output table, w, b;
};

Tensor ids_of(int step) { return Tensor::of<int32_t>({4}, {1, step % 6, 4, 1}); }

// The loss before each of 5 steps, then all variables.
std::vector<std::vector<float>> train(const MakeOptimizer& make, bool use_resource) {
  Graph graph;
  const Model model(graph, use_resource);
  const Output step =
      variable(graph, "global_step", {}, i64, {.trainable = false, .use_resource = use_resource});
  const Output ids = placeholder(graph, "ids", i32, {4});
  const Output loss = model.loss(ids);
  Node& update = make(step)->minimize(loss, {.global_step = step});
  Node& init = initialize_variables(graph);
  for (const auto& node : graph.nodes())
    EXPECT_TRUE(!node->op->is_variable || is_resource_variable(*node->op) == use_resource)
        << describe(*node);
  Session session(graph);
  session.run({init});
  std::vector<std::vector<float>> out;
  for (int i = 0; i < 5; ++i) {
    const auto [value] = session.run({{ids, ids_of(i)}}, fetch(loss), {update});
    out.push_back(floats(value));
  }
  EXPECT_EQ(session.run({}, {step})[0].item<int64_t>(), 5);
  for (const Output& variable : graph.collection("variables")) {
    if (variable.dtype() == f32) out.push_back(floats(session.run({}, {variable})[0]));
  }
  return out;
}

struct NamedOptimizer {
  const char* name;
  MakeOptimizer make;
};
void PrintTo(const NamedOptimizer& optimizer, std::ostream* out) { *out << optimizer.name; }

template <class T>
NamedOptimizer named(const char* name, const T& optimizer) {
  return {name, [optimizer](Output) { return std::make_unique<T>(optimizer); }};
}

class OptimizerOfResources : public testing::TestWithParam<NamedOptimizer> {};

TEST_P(OptimizerOfResources, TrainsLikeReferenceVariables) {
  const auto expected = train(GetParam().make, false), got = train(GetParam().make, true);
  EXPECT_EQ(got, expected);
  EXPECT_NE(expected[0], expected[4]);
}

INSTANTIATE_TEST_SUITE_P(
    All, OptimizerOfResources,
    testing::Values(
        named("Sgd", Sgd(0.1)), named("Momentum", Momentum(0.1)),
        named("Nesterov", Momentum(0.1, {.nesterov = true})), named("Adagrad", Adagrad(0.1)),
        NamedOptimizer{"AdagradDA",
                       [](Output step) { return std::make_unique<AdagradDA>(0.1, step); }},
        named("Adadelta", Adadelta(1)), named("RmsProp", RmsProp(0.05, {.momentum = 0.5})),
        named("RmsPropCentered", RmsProp(0.05, {.centered = true})), named("Adam", Adam(0.05)),
        named("AdamLazy", Adam(0.05, {.lazy = true})), named("AdamW", AdamW(0.05)),
        named("AdamWLazy", AdamW(0.05, {.lazy = true})), named("Adamax", Adamax(0.05)),
        named("Ftrl", Ftrl(0.1, {.l1 = 0.01})), named("FtrlV2", Ftrl(0.1, {.l2_shrinkage = 0.1})),
        named("ProximalGradientDescent", ProximalGradientDescent(0.1, {.l1 = 0.01})),
        named("ProximalAdagrad", ProximalAdagrad(0.1, {.l2 = 0.01})),
        named("AddSign", AddSign(0.05)), named("PowerSign", PowerSign(0.05)),
        NamedOptimizer{"Clipped",
                       [](Output) {
                         auto optimizer = std::make_unique<Momentum>(0.1);
                         optimizer->set_gradient_transform(
                             [](auto g) { return clip_by_global_norm(std::move(g), 0.1); });
                         return optimizer;
                       }}),
    [](const auto& info) { return std::string(info.param.name); });

TEST(UseResource, MakesTheNodesOfTensorFlow) {
  Graph graph;
  const NameScope layer(graph, "layer");
  const Output w = variable(graph, "w", {2, 3}, {.use_resource = true});
  EXPECT_EQ(w.name(), "layer/w/Read/ReadVariableOp:0");
  EXPECT_EQ(w.dtype(), f32);
  EXPECT_EQ(w.shape(), Shape({2, 3}));
  EXPECT_EQ(variable_name(w), "layer/w");
  EXPECT_EQ(checkpoint_name(w), "layer/w");
  EXPECT_TRUE(is_resource_variable(w));
  const Node& handle = *graph.find("layer/w");
  EXPECT_TRUE(handle.is("VarHandleOp"));
  EXPECT_EQ(handle.attr<std::string>("shared_name"), "layer/w");
  EXPECT_EQ(initializer_of(graph, w).name, "layer/w/Assign");
  EXPECT_TRUE(same(trainable_variables(graph).at(0), w));
  EXPECT_TRUE(same(variable_named(graph, "layer/w"), w));
  EXPECT_FALSE(variable_named(graph, "layer"));
  const Output m = slot(w, "Momentum");
  EXPECT_EQ(variable_name(m), "layer/w/Momentum");
  EXPECT_TRUE(is_resource_variable(m));
  EXPECT_FALSE(is_resource_variable(variable(graph, "v", {})));
}

TEST(UseResource, VariableOpsHaveNoInputsAndOneOutput) {
  for (const char* op : {"VariableV2", "Variable", "VarHandleOp"})
    EXPECT_TRUE(op_named(op).is_variable) << op;
  for (const OpDef* op : all_ops()) {
    if (!op->is_variable) continue;
    EXPECT_TRUE(op->inputs.empty()) << op->name;
    EXPECT_EQ(op->outputs.size(), 1U) << op->name;
  }
}

TEST(UseResource, UpdatesReturnTheNewValue) {
  Graph graph;
  const Output w = variable(graph, "w", {4, 1}, {.use_resource = true});
  const Output ids = constant(graph, {2, 0});
  const Output set = assign(w, 3), more = assign_add(w, 1), less = assign_sub(w, 0.5),
               twice = assign_add(assign(w, 10), 1), rows = scatter_update(w, ids, 7),
               added = scatter_add(w, ids, 1), taken = scatter_sub(w, ids, 2);
  const Output known = is_variable_initialized(w);
  Session session(graph);
  EXPECT_FALSE(session.run(known).item<bool>());
  const auto value = [&](const Output& fetched) { return floats(session.run(fetched)); };
  EXPECT_THAT(value(set), ElementsAre(3, 3, 3, 3));
  EXPECT_TRUE(session.run(known).item<bool>());
  EXPECT_THAT(value(more), ElementsAre(4, 4, 4, 4));
  EXPECT_THAT(value(less), ElementsAre(3.5, 3.5, 3.5, 3.5));
  EXPECT_THAT(value(twice), ElementsAre(11, 11, 11, 11));
  EXPECT_THAT(value(rows), ElementsAre(7, 11, 7, 11));
  EXPECT_THAT(value(added), ElementsAre(8, 11, 8, 11));
  EXPECT_THAT(value(taken), ElementsAre(6, 11, 6, 11));
  EXPECT_THAT(value(w), ElementsAre(6, 11, 6, 11));
}

TEST(UseResource, AssignKeepsTheShape) {
  for (const bool use_resource : {false, true}) {
    Graph graph;
    const Output w = variable(graph, "w", {2}, {.use_resource = use_resource});
    const Output value = placeholder(graph, "value", f32);
    const Output set = assign(w, value);
    Node& init = initialize_variables(graph);
    Session session(graph);
    session.run(init);
    expect_error_with(Code::invalid_argument, "shape", [&] {
      session.run({{value, Tensor(f32, {3})}}, set);
    });
    expect_error_with(Code::invalid_argument, "[3]", [&] { assign(w, ones(graph, {3})); });
  }
}

TEST(UseResource, HandlesActAsVariables) {
  Graph graph;
  const Output handle = variable_handle(variable(graph, "w", {2}, {.use_resource = true}));
  EXPECT_EQ(handle.name(), "w:0");
  const Output set = assign(handle, 3);
  const Output value = read_variable(handle);
  Session session(graph);
  session.run({set});
  EXPECT_THAT(floats(session.run(value)), ElementsAre(3, 3));
}

TEST(UseResource, ReadVariableSeesTheUpdateItWaitsFor) {
  for (const bool use_resource : {false, true}) {
    Graph graph;
    const Output w =
        variable(graph, "w", {}, initializers::constant(2), f32, {.use_resource = use_resource});
    const auto seen_after = [&](const Output& update) {
      const ControlScope after(graph, {update});
      return read_variable(w);
    };
    const Output seen = seen_after(assign_add(w, 1)) * 10.0;
    Node& init = initialize_variables(graph);
    Session session(graph);
    session.run(init);
    EXPECT_EQ(session.run(seen).item<float>(), 30);
    expect_error_with(Code::invalid_argument, "is not a variable", [&] { read_variable(seen); });
  }
}

TEST(UseResource, GradientsCoverAllReads) {
  Graph graph;
  const Output w =
      variable(graph, "w", {2}, initializers::constant(3), f32, {.use_resource = true});
  const Output loss = sum(square(w)) + sum(read_variable(w) * 5.0);
  const Output of_one = gradients(loss, w)[0];
  const GradientAndVariable all = Sgd(1).compute_gradients(loss).at(0);
  EXPECT_TRUE(same(all.variable, w));
  Node& init = initialize_variables(graph);
  Session session(graph);
  session.run(init);
  EXPECT_THAT(floats(session.run(of_one)), ElementsAre(6, 6));
  EXPECT_THAT(floats(session.run(all.gradient)), ElementsAre(11, 11));
}

TEST(UseResource, GradientsOfRowsAreSparse) {
  Graph graph;
  const Model model(graph, true);
  const auto gradients = Sgd(1).compute_gradients(model.loss(constant(graph, {1, 1, 4})));
  EXPECT_TRUE(gradients.at(0).indices);   // words/embeddings
  EXPECT_FALSE(gradients.at(1).indices);  // w
}

TEST(UseResource, NamesUninitializedVariables) {
  Graph graph;
  const Output w = variable(graph, "w", {2}, {.use_resource = true});
  const Output y = w * 2.0;
  Session session(graph);
  expect_error_with(Code::failed_precondition, "Attempting to use uninitialized value w",
                    [&] { session.run(y); });
}

TEST(UseResource, ReadinessNamesUninitializedVariables) {
  Graph graph;
  variable(graph, "w", {2}, {.use_resource = true});
  const Readiness readiness(graph);
  Session session(graph);
  EXPECT_THAT(readiness.uninitialized(session), ElementsAre("w"));
  readiness.initialize(session);
  EXPECT_THAT(readiness.uninitialized(session), ElementsAre());
}

TEST(UseResource, CheckpointsServeBothKinds) {
  const ScratchDirectory directory;
  for (const bool saved_as : {false, true}) {
    Graph from, to;
    const Model written(from, saved_as), read(to, !saved_as);
    Node& init = initialize_variables(from);
    Saver saver(from), restorer(to);
    Session session(from), other(to);
    session.run(init);
    session.run({assign(written.b, 7)});
    const std::string prefix = saver.save(session, directory.path(), saved_as ? 1 : 2);
    restorer.restore(other, prefix);
    EXPECT_EQ(floats(other.run(read.w)), floats(session.run(written.w)));
    EXPECT_THAT(floats(other.run(read.b)), ElementsAre(7, 7));
    std::vector<std::string> names;
    const CheckpointReader reader(prefix);
    for (const auto& variable : reader.variables()) names.push_back(variable.name);
    EXPECT_THAT(names, testing::UnorderedElementsAre("words/embeddings", "w", "b"));
  }
}

TEST(UseResource, MovingAveragesFollowThem) {
  const auto averages = [](bool use_resource) {
    Graph graph;
    const Output w =
        variable(graph, "w", {2}, initializers::constant(3), f32, {.use_resource = use_resource});
    Node& train = Sgd(0.1).minimize(sum(square(w)));
    ExponentialMovingAverage average(0.5);
    Node& update = average.apply(graph, {}, &train);
    Node& take_over = average.assign_averages();
    EXPECT_EQ(average.variables_to_restore(graph).begin()->first, "w/ExponentialMovingAverage");
    Node& init = initialize_variables(graph);
    Session session(graph);
    session.run(init);
    std::vector<std::vector<float>> out;
    for (int i = 0; i < 3; ++i) {
      session.run(update);
      out.push_back(floats(session.run(average.average(w))));
    }
    session.run(take_over);
    out.push_back(floats(session.run(w)));
    return out;
  };
  EXPECT_EQ(averages(true), averages(false));
}

TEST(UseResource, PartitionedVariablesUseThem) {
  const auto learned = [](bool use_resource) {
    Graph graph;
    const auto table = partitioned_variable(graph, "table", {7, 2}, partitioners::fixed_size(3),
                                            counted(0.1F), f32, {.use_resource = use_resource});
    EXPECT_EQ(variable_name(table.parts()[1]), "table/part_1");
    EXPECT_EQ(checkpoint_name(table.parts()[1]), "table");
    EXPECT_EQ(part_of(table.parts()[1])->text(), "7 2 3,2:0,2");
    const Output ids = constant(graph, {6, 0, 3, 3});
    Node& train = Momentum(0.1).minimize(sum(square(embedding_lookup(table, ids) - 1.0)));
    const Output whole = table.value();
    Node& init = initialize_variables(graph);
    Saver saver(graph);
    Session session(graph);
    session.run(init);
    for (int i = 0; i < 3; ++i) session.run(train);
    const std::vector<float> out = floats(session.run(whole));
    const ScratchDirectory directory;
    const std::string prefix = saver.save(session, directory.path(), 1);
    session.run(init);
    saver.restore(session, prefix);
    EXPECT_EQ(floats(session.run(whole)), out);
    return out;
  };
  EXPECT_EQ(learned(true), learned(false));
}

TEST(UseResource, ConditionsUpdateThem) {
  Graph graph;
  const Output w = variable(graph, "w", 1, {.use_resource = true});
  const Output doubles = placeholder(graph, "doubles", DType::boolean, {});
  const Output result = cond(
      doubles, [&] { return assign(w, w * 2); }, [&] { return assign_add(w, 10); });
  Node& init = initialize_variables(graph);
  Session session(graph);
  session.run(init);
  EXPECT_EQ(session.run({{doubles, true}}, result).item<int32_t>(), 2);
  EXPECT_EQ(session.run({{doubles, false}}, result).item<int32_t>(), 12);
  EXPECT_EQ(session.run(w).item<int32_t>(), 12);
}

TEST(UseResource, RejectsUpdatesOfMixedKinds) {
  Graph graph;
  const Output w = variable(graph, "w", {2}, {.use_resource = true}), m = variable(graph, "m", {2});
  const Output one = ones(graph, {2});
  expect_error_with(Code::invalid_argument, "accum", [&] {
    update_variable("ApplyAdagrad", {w, m, constant(graph, 0.1F), one});
  });
  expect_error_with(Code::invalid_argument, "is updated in place, so it must be a variable", [&] {
    update_variable("ApplyAdagrad", {m, w, constant(graph, 0.1F), one});
  });
}

class ResourcesOnParameterServers : public testing::TestWithParam<bool> {};

TEST_P(ResourcesOnParameterServers, TrainLikeOneProcess) {
  const bool synchronous = GetParam();
  const auto trained = [&](bool use_resource) {
    InProcessCluster cluster({{"ps", 2}, {"worker", 2}});
    const ParameterServer strategy(cluster.spec());
    Graph graph;
    std::optional<Model> model;
    std::vector<Output> losses;
    const Output ids = placeholder(graph, "ids", i32, {4});
    Node* train = nullptr;
    for (int k = 0; k < (synchronous ? 2 : 1); ++k) {
      const auto replica = strategy.replica(graph, k);
      if (!model) model.emplace(graph, use_resource);
      losses.push_back(model->loss((ids + k) % 6));
      if (!synchronous) train = &strategy.minimize(Adam(0.05), losses[0]);
    }
    if (synchronous) train = &strategy.minimize(Adam(0.05), losses);
    std::vector<int> tasks;
    for (const Output& variable : {model->table, model->w, model->b}) {
      EXPECT_EQ(variable_node(variable)->requested_device->job, "ps");
      EXPECT_EQ(variable.node->requested_device->job, "ps");
      tasks.push_back(*variable_node(variable)->requested_device->task);
    }
    EXPECT_THAT(tasks, ElementsAre(0, 1, 1));  // by bytes
    Node& init = initialize_variables(graph);
    Session session(graph, {.target = cluster.target("worker", 0)});
    session.run(init);
    std::vector<std::vector<float>> out;
    for (int i = 0; i < 5; ++i)
      out.push_back(floats(session.run({{ids, ids_of(i)}}, {losses[0]}, {*train})[0]));
    for (const Output& variable : graph.collection("variables"))
      out.push_back(floats(session.run(variable)));
    return out;
  };
  EXPECT_EQ(trained(true), trained(false));
}

INSTANTIATE_TEST_SUITE_P(Ways, ResourcesOnParameterServers, testing::Values(false, true),
                         [](const auto& info) { return info.param ? "InStep" : "ByItself"; });

TEST(UseResource, AllReduceCopiesThem) {
  const auto trained = [](bool use_resource) {
    InProcessCluster cluster({{"worker", 2}});
    const AllReduce strategy(cluster.spec());
    Graph graph;
    std::vector<Output> losses, copies;
    const Output ids = placeholder(graph, "ids", i32, {4});
    for (int k = 0; k < 2; ++k) {
      const auto replica = strategy.replica(graph, k);
      const Model model(graph, use_resource);
      copies.push_back(model.w);
      losses.push_back(model.loss((ids + k) % 6));
    }
    EXPECT_EQ(variable_name(copies[1]), "worker_1/w");
    Node& train = strategy.minimize(Adam(0.05), losses);
    Node& init = initialize_variables(graph);
    Saver saver(graph);
    Session session(graph, {.target = cluster.target("worker", 0)});
    session.run(init);
    std::vector<std::vector<float>> out;
    for (int i = 0; i < 5; ++i)
      out.push_back(floats(session.run({{ids, ids_of(i)}}, {losses[1]}, {train})[0]));
    const auto values = [&] {
      std::vector<std::vector<float>> all;
      for (const Output& copy : copies) all.push_back(floats(session.run(copy)));
      EXPECT_EQ(all[0], all[1]);
      return all;
    };
    out.push_back(values()[0]);
    const ScratchDirectory directory;
    const std::string prefix = saver.save(session, directory.path(), 1);
    session.run(init);
    saver.restore(session, prefix);
    EXPECT_EQ(values()[0], out.back());
    return out;
  };
  EXPECT_EQ(trained(true), trained(false));
}

TEST(UseResource, ReplicasMustBeOfTheSameKind) {
  const AllReduce strategy(ClusterSpec::parse(R"({"cluster": {"worker": ["h:1", "h:2"]}})"));
  Graph graph;
  {
    const auto replica = strategy.replica(graph, 0);
    variable(graph, "w", {2}, {.use_resource = true});
  }
  const auto replica = strategy.replica(graph, 1);
  expect_error([&] { variable(graph, "w", {2}); }, Code::invalid_argument,
               "the variable 'worker_1/w' is a copy of 'w', but only one of them is a "
               "resource variable: give both the same use_resource");
}

}  // namespace
}  // namespace leat
