// All-reduce: what crosses between the workers, and that it trains like one device with the mean
// gradient.
#include "frontends/cpp/strategies/all_reduce.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <set>

#include "frontends/cpp/nn/nn.h"
#include "frontends/cpp/training/training_session.h"
#include "graph/formats/checkpoint.h"
#include "graph/passes/pipeline.h"
#include "tests/support/expect_error.h"
#include "tests/support/in_process_cluster.h"
#include "tests/support/scratch_directory.h"

namespace leat {
namespace {

using testing::ElementsAre;

ClusterSpec workers(int count) {
  std::string addresses;
  for (int i = 0; i < count; ++i) addresses += concat(i > 0 ? ", " : "", "\"h:", 2000 + i, "\"");
  return ClusterSpec::parse(concat(R"({"cluster": {"worker": [)", addresses, "]}}"));
}

nn::Dense make_layer(Graph& graph) {
  nn::DenseOptions options;
  options.kernel_initializer = initializers::random_uniform(-1, 1, 7);
  options.name = "layer";
  return {graph, 4, 2, options};  // 10 numbers
}

// Replicas of a model, as a program builds them.
struct Program {
  Program(const AllReduce& strategy, const Optimizer& optimizer) {
    for (int k = 0; k < strategy.workers(); ++k) {
      const auto replica = strategy.replica(graph, k);
      if (k == 0)
        step = variable(graph, "global_step", {}, initializers::zeros(), i64, {.trainable = false});
      inputs.push_back(placeholder(graph, "x", f32, {3, 4}));
      losses.push_back(mean(square(make_layer(graph)(inputs.back()) - 1.0)));
    }
    train = &strategy.minimize(optimizer, losses, {.global_step = step});
  }
  Graph graph;
  Output step;
  std::vector<Output> inputs, losses;
  Node* train = nullptr;
};

// The same model on one device: shared variables, and the mean of the gradients of all losses.
struct Reference {
  Reference(int replicas, const Optimizer& optimizer) {
    const nn::Dense layer = make_layer(graph);
    std::vector<std::vector<GradientAndVariable>> all;
    for (int k = 0; k < replicas; ++k) {
      inputs.push_back(placeholder(graph, "x", f32, {3, 4}));
      losses.push_back(mean(square(layer(inputs.back()) - 1.0)));
      all.push_back(optimizer.compute_gradients(losses.back()));
    }
    std::vector<GradientAndVariable> means = all.front();
    for (size_t v = 0; v < means.size(); ++v) {
      std::vector<Output> gradients;
      for (const auto& of_replica : all) gradients.push_back(of_replica[v].gradient);
      if (replicas > 1) means[v].gradient = add_n(gradients) * (1.0 / replicas);
    }
    train = &optimizer.apply_gradients(means);
  }
  Graph graph;
  std::vector<Output> inputs, losses;
  Node* train = nullptr;
};

Feeds batches(const std::vector<Output>& inputs, int step) {
  Feeds out;
  for (size_t k = 0; k < inputs.size(); ++k) {
    Tensor batch(f32, {3, 4});
    for (int i = 0; i < 12; ++i)
      batch.data<float>()[i] =
          std::sin(static_cast<float>(step * 31 + static_cast<int>(k) * 12 + i));
    out.push_back({inputs[k], batch});
  }
  return out;
}

PartitionedGraph partitions(const Graph& graph, const std::vector<Output>& inputs,
                            const Node& train, int count) {
  PipelineOptions options;
  for (const Output& input : inputs) options.signature.feeds.push_back(input.name());
  options.signature.targets = {train.name};
  for (int k = 0; k < count; ++k) {
    options.placement.devices.push_back(
        {DeviceName::parse(concat("/job:worker/replica:0/task:", k, "/device:CPU:0")),
         DeviceType::cpu});
  }
  options.placement.default_device = options.placement.devices.front().name;
  return run_pipeline(graph, options);
}

// The step with `count` workers.
PartitionedGraph partitions(int count, const AllReduce::Options& options = {}) {
  const Program program(AllReduce(workers(count), options), Sgd{0.1});
  return partitions(program.graph, program.inputs, *program.train, count);
}

// "0->1 float[3]" for every value that crosses, "0->1 signal" for a control edge.
std::vector<std::string> crossings(const PartitionedGraph& graph) {
  std::vector<std::string> out;
  for (const CutEdge& edge : graph.edges) {
    const std::string what =
        edge.dtype == DType::invalid ? "signal" : concat(edge.dtype, edge.shape);
    out.push_back(concat(*edge.source.task, "->", *edge.destination.task, " ", what));
  }
  std::sort(out.begin(), out.end());
  return out;
}

const Sgd descent{0.1};

TEST(AllReduce, OneWorkerSendsNothing) {
  const PartitionedGraph step = partitions(1);
  EXPECT_EQ(step.partitions.size(), 1u);
  EXPECT_THAT(crossings(step), ElementsAre());
  for (const auto& node : step.partitions.begin()->second.nodes())
    EXPECT_FALSE(node->name.starts_with("mean_gradients/")) << node->name;
}

// Each worker sends the 10 numbers of its gradient to both others.
TEST(AllReduce, SmallGradientsGoToAllWorkersInOneTrip) {
  const PartitionedGraph step = partitions(3);
  EXPECT_THAT(crossings(step),
              ElementsAre("0->1 float[10]", "0->2 float[10]", "1->0 float[10]", "1->0 signal",
                          "1->2 float[10]", "2->0 float[10]", "2->0 signal", "2->1 float[10]"));
}

// Chunks of 3, 3 and 4 numbers. Each goes to its owner twice, and its mean to the two others: 40
// numbers are sent, 2(N-1) times 10.
TEST(AllReduce, LargeGradientsAreSentInChunks) {
  const PartitionedGraph step = partitions(3, {.trip_bytes = 0});
  EXPECT_THAT(crossings(step),
              ElementsAre("0->1 float[3]", "0->1 float[3]", "0->2 float[3]", "0->2 float[4]",
                          "1->0 float[3]", "1->0 float[3]", "1->0 signal", "1->2 float[3]",
                          "1->2 float[4]", "2->0 float[3]", "2->0 float[4]", "2->0 signal",
                          "2->1 float[3]", "2->1 float[4]"));
  int waves = 0;
  for (const CutEdge& edge : step.edges) waves = std::max(waves, edge.wave + 1);
  EXPECT_EQ(waves, 3);  // chunks, means, signals
}

// Two workers would send as many bytes either way: one trip.
TEST(AllReduce, TwoWorkersExchangeDirectly) {
  const PartitionedGraph step = partitions(2, {.trip_bytes = 0});
  EXPECT_THAT(crossings(step), ElementsAre("0->1 float[10]", "1->0 float[10]", "1->0 signal"));
}

// ---- The other algorithms: who sends how much to whom ----

// From source to destination, the elements of all values that cross.
std::map<std::pair<int, int>, int64_t> traffic(const ClusterSpec& cluster,
                                               const AllReduce::Options& options) {
  const Program program(AllReduce(cluster, options), Sgd{0.1});
  const PartitionedGraph step =
      partitions(program.graph, program.inputs, *program.train, static_cast<int>(cluster.size()));
  std::map<std::pair<int, int>, int64_t> out;
  for (const CutEdge& edge : step.edges) {
    if (edge.dtype == DType::invalid) continue;
    out[{*edge.source.task, *edge.destination.task}] += edge.shape.elements();
  }
  return out;
}

using collectives::Algorithm;
using testing::Pair;

// Each to the next one, all segments but one, twice: 2, 3, 2 and 3 numbers.
TEST(AllReduce, ARingSendsToTheNextWorkerOnly) {
  EXPECT_THAT(traffic(workers(4), {.algorithm = Algorithm::ring}),
              ElementsAre(Pair(Pair(0, 1), 8 + 7), Pair(Pair(1, 2), 7 + 8), Pair(Pair(2, 3), 8 + 7),
                          Pair(Pair(3, 0), 7 + 8)));
}

// Halves of 5 at distance 2, then quarters of 2 and 3 at distance 1, and back.
TEST(AllReduce, HalvingSendsToPartnersAtEachDistance) {
  EXPECT_THAT(traffic(workers(4), {.algorithm = Algorithm::halving_doubling}),
              ElementsAre(Pair(Pair(0, 1), 3 + 2), Pair(Pair(0, 2), 5 + 5), Pair(Pair(1, 0), 2 + 3),
                          Pair(Pair(1, 3), 5 + 5), Pair(Pair(2, 0), 5 + 5), Pair(Pair(2, 3), 3 + 2),
                          Pair(Pair(3, 1), 5 + 5), Pair(Pair(3, 2), 2 + 3)));
}

TEST(AllReduce, ATreeSendsUpAndDown) {
  EXPECT_THAT(traffic(workers(5), {.algorithm = Algorithm::tree}),
              ElementsAre(Pair(Pair(0, 1), 10), Pair(Pair(0, 2), 10), Pair(Pair(0, 4), 10),
                          Pair(Pair(1, 0), 10), Pair(Pair(2, 0), 10), Pair(Pair(2, 3), 10),
                          Pair(Pair(3, 2), 10), Pair(Pair(4, 0), 10)));
}

// Two workers on each of two hosts: each sums half of the 10 numbers within its host, and exchanges
// it with the one of the other host that has the same half. 20 numbers cross between the hosts, of
// which chunks of equal size would send 40. Chosen by itself.
TEST(AllReduce, BetweenHostsEachPartGoesOnce) {
  const ClusterSpec two_hosts =
      ClusterSpec::parse(R"({"cluster": {"worker": ["a:1", "a:2", "b:1", "b:2"]}})");
  const auto expected =
      ElementsAre(Pair(Pair(0, 1), 5 + 5), Pair(Pair(0, 2), 3 + 2), Pair(Pair(1, 0), 5 + 5),
                  Pair(Pair(1, 3), 3 + 2), Pair(Pair(2, 0), 2 + 3), Pair(Pair(2, 3), 5 + 5),
                  Pair(Pair(3, 1), 2 + 3), Pair(Pair(3, 2), 5 + 5));
  EXPECT_THAT(traffic(two_hosts, {.trip_bytes = 0}), expected);
  EXPECT_THAT(traffic(two_hosts, {.algorithm = Algorithm::hierarchical}), expected);
  EXPECT_THAT(traffic(workers(4), {.algorithm = Algorithm::hierarchical, .workers_per_group = 2}),
              expected);
  // One host, or one worker on each: there is nothing to gain.
  EXPECT_EQ(traffic(workers(4), {.algorithm = Algorithm::hierarchical}),
            traffic(workers(4), {.algorithm = Algorithm::chunks}));
}

// The bias and the kernel are separate, the bias first: the backward pass computes it first.
TEST(AllReduce, BucketsAreBounded) {
  const PartitionedGraph step = partitions(2, {.bucket_bytes = 32});
  EXPECT_THAT(crossings(step), ElementsAre("0->1 float[2]", "0->1 float[8]", "1->0 float[2]",
                                           "1->0 float[8]", "1->0 signal"));
}

// Edges are numbered as the buckets are made, and of tensors that wait for a link the one with the
// lowest number goes first (channel.h).
TEST(AllReduce, WithPriorityTheFirstVariablesComeFirst) {
  for (const bool priority : {false, true}) {
    Graph graph;
    const AllReduce strategy(workers(2), {.bucket_bytes = 1, .priority = priority});
    std::vector<Output> losses;
    for (int k = 0; k < 2; ++k) {
      const auto replica = strategy.replica(graph, k);
      const Output first = variable(graph, "first", {2, 2}), last = variable(graph, "last", {3, 2});
      losses.push_back(sum(square(first)) + sum(square(last)));
    }
    const Node& train = strategy.minimize(descent, losses);
    std::vector<Shape> sent;
    for (const CutEdge& edge : partitions(graph, {}, train, 2).edges) {
      if (*edge.source.task == 0 && edge.dtype == f32) sent.push_back(edge.shape);
    }
    EXPECT_THAT(sent, priority ? ElementsAre(Shape{4}, Shape{6}) : ElementsAre(Shape{6}, Shape{4}));
  }
}

TEST(AllReduce, GradientsOfTwoDtypesStaySeparate) {
  Graph graph;
  const AllReduce strategy(workers(2));
  std::vector<Output> losses;
  for (int k = 0; k < 2; ++k) {
    const auto replica = strategy.replica(graph, k);
    const Output a = variable(graph, "a", {2}),
                 b = variable(graph, "b", {3}, initializers::ones(), f64);
    const Output c = variable(graph, "c", {4});
    losses.push_back(sum(square(a)) + cast(sum(square(b)), f32) + sum(square(c)));
  }
  const Node& train = strategy.minimize(descent, losses);
  EXPECT_THAT(crossings(partitions(graph, {}, train, 2)),
              ElementsAre("0->1 double[3]", "0->1 float[6]", "1->0 double[3]", "1->0 float[6]",
                          "1->0 signal"));
}

struct Case {
  const char* name;
  int workers;
  int64_t trip_bytes;
  std::shared_ptr<Optimizer> optimizer;
};

std::ostream& operator<<(std::ostream& out, const Case& of) { return out << of.name; }

class AllReduceTraining : public testing::TestWithParam<Case> {};

// Losses are equal to the last bit, and so are all copies of variables and slots.
TEST_P(AllReduceTraining, EqualsOneDeviceWithTheMeanGradient) {
  const Case& of = GetParam();
  InProcessCluster cluster({{"worker", of.workers}});
  const AllReduce strategy(cluster.spec(), {.trip_bytes = of.trip_bytes});
  Program program(strategy, *of.optimizer);
  Reference reference(of.workers, *of.optimizer);
  Node& start = initialize_variables(program.graph);
  Node& reference_start = initialize_variables(reference.graph);
  Session session(program.graph, {.target = cluster.target("worker", 0)});
  Session expected(reference.graph);
  session.run({start});
  expected.run({reference_start});
  for (int i = 0; i < 5; ++i) {
    const std::vector<Tensor> losses =
        session.run(batches(program.inputs, i), program.losses, {*program.train});
    const std::vector<Tensor> same =
        expected.run(batches(reference.inputs, i), reference.losses, {*reference.train});
    for (size_t k = 0; k < losses.size(); ++k)
      EXPECT_EQ(losses[k].item<float>(), same[k].item<float>()) << "step " << i << ", " << k;
  }
  EXPECT_EQ(session.run({}, {program.step})[0].item<int64_t>(), 5);
  size_t copies = 0;
  for (const Output& initializer : program.graph.collection("copy_initializers")) {
    const std::vector<Tensor> pair =
        session.run({}, {initializer.node->inputs[0], initializer.node->inputs[1]});
    EXPECT_TRUE(std::ranges::equal(pair[0].span<float>(), pair[1].span<float>()))
        << initializer.name() << ": " << pair[0] << " and " << pair[1];
    ++copies;
  }
  // Every variable but the global step.
  EXPECT_EQ(copies, (program.graph.collection("variables").size() - 1) *
                        static_cast<size_t>(of.workers - 1));
}

INSTANTIATE_TEST_SUITE_P(All, AllReduceTraining,
                         testing::Values(Case{"OneWorker", 1, 0, std::make_shared<Adam>(0.1)},
                                         Case{"TwoWorkers", 2, 0, std::make_shared<Momentum>(0.1)},
                                         Case{"ThreeDirectly", 3, 1 << 20,
                                              std::make_shared<Adam>(0.1)},
                                         Case{"ThreeByChunks", 3, 0, std::make_shared<Adam>(0.1)},
                                         Case{"FourByChunks", 4, 0, std::make_shared<Sgd>(0.1)}),
                         [](const auto& info) { return info.param.name; });

std::set<std::string> saved(const std::string& prefix) {
  std::set<std::string> out;
  for (const auto& variable : CheckpointReader(prefix).variables()) out.insert(variable.name);
  return out;
}

std::vector<float> train(Program& program, const std::string& target, const std::string& directory,
                         int64_t last) {
  TrainingSession training(program.graph, {.train = program.train,
                                           .global_step = program.step,
                                           .inputs = program.inputs,
                                           .fetches = program.losses,
                                           .session = {.target = target},
                                           .directory = directory});
  std::vector<float> out;
  while (training.global_step() < last) {
    std::vector<Tensor> feeds;
    for (const Feed& feed : batches(program.inputs, static_cast<int>(training.global_step())))
      feeds.push_back(feed.value);
    const auto losses = training.step(feeds);
    for (const Tensor& loss : losses.value()) out.push_back(loss.item<float>());
  }
  return out;
}

// One copy is saved, under the names of a program with one process. A training that starts from it
// has equal copies, and continues undisturbed.
TEST(AllReduce, ResumesFromTheCheckpointOfOneCopy) {
  InProcessCluster cluster({{"worker", 2}});
  const AllReduce strategy(cluster.spec());
  const ScratchDirectory directory;
  const auto run = [&](const std::string& where, int64_t last) {
    Program program(strategy, Adam{0.1});
    const std::vector<float> losses = train(program, cluster.target("worker", 0), where, last);
    for (int k = 0; k < 2; ++k) {  // a new process has no variables
      cluster.kill("worker", k);
      cluster.restart("worker", k);
    }
    return losses;
  };
  const std::vector<float> undisturbed = run("", 8);
  std::vector<float> resumed;
  for (const int64_t last : {3, 8}) {
    const std::vector<float> part = run(directory.path(), last);
    resumed.insert(resumed.end(), part.begin(), part.end());
  }
  EXPECT_EQ(resumed, undisturbed);
  EXPECT_THAT(
      saved(directory / "model.ckpt-8"),
      ElementsAre("beta1_power", "beta2_power", "global_step", "layer/bias", "layer/bias/Adam",
                  "layer/bias/Adam_1", "layer/kernel", "layer/kernel/Adam", "layer/kernel/Adam_1"));
}

// A variable that nothing trains belongs to its replica after the start.
TEST(AllReduce, ReplicasKeepTheirOwnChanges) {
  InProcessCluster cluster({{"worker", 2}});
  const AllReduce strategy(cluster.spec());
  Graph graph;
  std::vector<Output> seen, updates;
  for (int k = 0; k < 2; ++k) {
    const auto replica = strategy.replica(graph, k);
    seen.push_back(
        variable(graph, "seen", {}, initializers::constant(4), f32, {.trainable = false}));
    updates.push_back(assign_add(seen.back(), constant(graph, Tensor::scalar(k + 1.0f))));
  }
  Node& start = initialize_variables(graph);
  Session session(graph, {.target = cluster.target("worker", 0)});
  session.run({start});
  session.run({updates[0], updates[1]});
  const auto [first, second] = session.run({}, fetch(seen[0], seen[1]));
  EXPECT_EQ(first.item<float>(), 5);
  EXPECT_EQ(second.item<float>(), 6);
}

TEST(AllReduce, ReplicasMayBeReenteredAndNested) {
  const AllReduce strategy(workers(3));
  Graph graph;
  const NameScope outer(graph, "outer");
  const auto name_in = [&](int index) {
    const auto replica = strategy.replica(graph, index);
    return no_op(graph, "here").name;
  };
  EXPECT_EQ(name_in(1), "worker_1/outer/here");
  EXPECT_EQ(name_in(0), "outer/here");
  const auto replica = strategy.replica(graph, 1);
  EXPECT_EQ(name_in(2), "worker_2/outer/here");
  EXPECT_EQ(name_in(0), "outer/here_1");
  EXPECT_EQ(no_op(graph, "last").requested_device, DeviceName::parse("/job:worker/task:1"));
}

TEST(AllReduce, ReportsMistakes) {
  const AllReduce strategy(workers(2));
  expect_error_with(Code::invalid_argument,
                    "a strategy trains on the tasks of the job 'worker', which",
                    [] { AllReduce(ClusterSpec::parse(R"({"cluster": {"ps": ["h:1"]}})")); });
  {
    Graph graph;
    expect_error([&] { strategy.replica(graph, 2); }, Code::invalid_argument,
                 "replica 2 does not exist: job 'worker' has 2 tasks");
    const auto second = strategy.replica(graph, 1);
    expect_error(
        [&] { variable(graph, "w", {2}); }, Code::invalid_argument,
        "the variable 'worker_1/w' must be a copy of 'w', which does not exist: make replica "
        "0 first, and give every replica the same variables under the same names");
  }
  Graph graph;
  Output w, copy, second_loss;
  {
    const auto first = strategy.replica(graph, 0);
    w = variable(graph, "w", {2});
  }
  {
    const auto second = strategy.replica(graph, 1);
    expect_error([&] { variable(graph, "w", {3}); }, Code::invalid_argument,
                 "the variable 'worker_1/w' is float[3], but its original 'w' is float[2]");
    second_loss = sum(square(w));
  }
  const Output loss = sum(square(w));
  const auto minimize = [&](const std::vector<Output>& losses) {
    return [&strategy, losses] { strategy.minimize(descent, losses); };
  };
  expect_error(minimize({loss}), Code::invalid_argument,
               "an all-reduce over 2 workers needs the loss of each replica, got 1");
  expect_error(minimize({loss, Output()}), Code::invalid_argument,
               "the loss of replica 1 is an empty Output");
  expect_error(minimize({loss, second_loss}), Code::invalid_argument,
               "replica 1 has no copy 'worker_1/w' of the variable 'w': every replica must make "
               "the same variables as replica 0, under the same names");
  {
    const auto second = strategy.replica(graph, 1);
    copy = variable(graph, "w", {2});
    second_loss = sum(square(copy));
  }
  expect_error(minimize({second_loss, loss}), Code::invalid_argument,
               "no loss depends on a trainable variable of its own replica: give the losses in "
               "the order of the replicas");
  expect_error_with(Code::invalid_argument,
                    "of replica 1 does not depend on its variable 'worker_1/w'",
                    minimize({loss, loss}));
  EXPECT_NO_THROW(minimize({loss, second_loss})());
}

TEST(AllReduce, NamesATakenName) {
  const AllReduce strategy(workers(2));
  Graph graph;
  no_op(graph, "worker_1");
  expect_error_with(Code::invalid_argument, "the name 'worker_1', which replica 1 needs, is taken",
                    [&] { strategy.replica(graph, 1); });
}

}  // namespace
}  // namespace leat
