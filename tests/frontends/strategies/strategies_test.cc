// Strategies: each against its rule, written as a few lines of plain C++, on a cluster of tasks in
// this process. Here what all have in common, and those with one gradient for all;
// server_strategies_test.cc, local_strategies_test.cc and thread_strategies_test.cc have the rest.
#include "frontends/cpp/strategies/strategy.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "frontends/cpp/nn/nn.h"
#include "graph/passes/pipeline.h"
#include "tests/support/expect_error.h"
#include "tests/support/scratch_directory.h"
#include "tests/support/strategy_programs.h"

namespace leat {
namespace {

using namespace strategy_programs;

using testing::ElementsAre;
using testing::HasSubstr;

// ---- One worker ----

class Alone : public testing::TestWithParam<std::string> {};

TEST_P(Alone, IsPlainGradientDescent) {
  EXPECT_FLOAT_EQ(Program(GetParam(), {}).train(7), descended(7));
}

INSTANTIATE_TEST_SUITE_P(
    Strategies, Alone,
    testing::Values("one_device", "parameter_server", "parameter_server:staleness=0",
                    "parameter_server:staleness=2", "central_storage", "all_reduce",
                    "multi_worker_mirrored", "mirrored", "byteps", "multiverso", "sharded_state",
                    "hogwild:threads=1", "tensor_parallel", "parameter_server:delay_aware=dc_asgd",
                    "parameter_server:drop_stale=0", "parameter_server:staleness=0:servers=worker",
                    "parameter_server:staleness=0:backup_workers=1", "all_reduce:adasum=true",
                    "all_reduce:join=true", "automatic", "local_sgd", "local_sgd:steps=3",
                    "model_average", "simu_parallel_sgd", "bmuf:steps=3", "downpour:local_rate=0"),
    [](const auto& info) {
      std::string name = info.param;
      for (char& c : name) c = std::isalnum(static_cast<unsigned char>(c)) ? c : '_';
      return name;
    });

// ---- Rules of many workers ----

TEST(Strategies, SynchronousOnesTakeTheMeanGradient) {
  constexpr int n = 3;
  InProcessCluster cluster({{"ps", 1}, {"worker", n}});
  float w = start;
  for (int i = 0; i < 8; ++i) {
    float sum = 0;
    for (int k = 0; k < n; ++k) sum += w - x_of(n, k, i);
    w -= rate * sum / n;
  }
  for (const char* strategy :
       {"all_reduce", "all_reduce:algorithm=chunks", "byteps", "sharded_state",
        "parameter_server:staleness=0", "tensor_parallel:data=3"})
    EXPECT_FLOAT_EQ(Program(strategy, member(cluster, 0)).train(8), w) << strategy;
}

TEST(Strategies, AllReduceAddsUpSeveralBatches) {
  constexpr int n = 2, passes = 3;
  InProcessCluster cluster({{"worker", n}});
  float w = start;
  for (int i = 0; i < 4; ++i) {
    float sum = 0;
    for (int k = 0; k < n; ++k) {
      for (int p = 0; p < passes; ++p) sum += w - x_of(n, k, i * passes + p);
    }
    w -= rate * sum / (n * passes);
  }
  for (const char* strategy : {"all_reduce:backward_passes_per_step=3", "full_batch:batches=3"})
    EXPECT_FLOAT_EQ(Program(strategy, member(cluster, 0)).train(4), w) << strategy;
}

TEST(Strategies, AdasumAddsWhatIsOrthogonal) {
  constexpr int n = 2;
  InProcessCluster cluster({{"worker", n}});
  float w = start;
  for (int i = 0; i < 8; ++i) {
    const float a = w - x_of(n, 0, i), b = w - x_of(n, 1, i);
    w -= rate * ((1 - a * b / (2 * a * a)) * a + (1 - a * b / (2 * b * b)) * b);
  }
  EXPECT_NEAR(Program("all_reduce:adasum=true", member(cluster, 0)).train(8), w, 1e-6);
}

TEST(Strategies, AllReduceCompresses) {
  constexpr int n = 3;
  InProcessCluster cluster({{"worker", n}});
  float plain = start, two_bit = start;
  std::vector<float> residual(n, 0);
  for (int i = 0; i < 8; ++i) {
    float sum = 0, sent = 0;
    for (int k = 0; k < n; ++k) {
      sum += plain - x_of(n, k, i);
      float& r = residual[static_cast<size_t>(k)];
      r += two_bit - x_of(n, k, i);
      const float now = r >= 0.25F ? 0.25F : r <= -0.25F ? -0.25F : 0;
      r -= now;
      sent += now;
    }
    plain -= rate * sum / n;
    two_bit -= rate * sent / n;
  }
  const auto trained = [&](const char* options) {
    return Program(concat("all_reduce:", options), member(cluster, 0)).train(8);
  };
  EXPECT_NEAR(trained("compress=2bit:threshold=0.25"), two_bit, 1e-6);
  for (const char* all : {"compress=top_k:ratio=1", "filter=significant:threshold=0",
                          "filter=random_skip:ratio=1", "filter=kkt:l1=0"})
    EXPECT_NEAR(trained(all), plain, 1e-6) << all;
  for (const char* rounded : {"compress=bf16", "compress=fp16:algorithm=chunks"}) {
    EXPECT_NEAR(trained(rounded), plain, 0.02) << rounded;
    EXPECT_NE(trained(rounded), plain) << rounded;
  }
}

// Of 10 elements worker 0 has 4, the two others 3 each.
TEST(Strategies, AWorkerWithoutDataLeavesTheMeanToTheOthers) {
  constexpr int n = 3, elements = 10;
  InProcessCluster cluster({{"worker", n}});
  Tensor values(f32, {elements});
  for (int64_t i = 0; i < elements; ++i) values.data<float>()[i] = x(i);
  const Dataset few = datasets::from_tensor_slices(values).batch(1);
  float w = start;
  for (int i = 0; i < 4; ++i) {
    const int contributors = i < 3 ? n : 1;
    float sum = 0;
    for (int k = 0; k < contributors; ++k) sum += w - x(i * n + k);
    w -= rate * sum / static_cast<float>(contributors);
  }
  for (const char* options : {"", ":algorithm=chunks"}) {
    Graph graph;
    const auto made = make_strategy(concat("all_reduce:join=true", options), member(cluster, 0));
    const Training training = made->minimize(graph, Sgd{rate}, few, follow);
    TrainingSession session(training);
    session.run();
    EXPECT_EQ(session.global_step(), 4) << options;
    EXPECT_NEAR(session.session().run(variable_named(graph, "w")).item<float>(), w, 1e-6)
        << options;
  }
}

// ---- What crosses ----

int64_t bytes_crossing(const Graph& graph, const std::string& target, int workers) {
  PipelineOptions options;
  options.signature.targets = {target};
  for (int k = 0; k < workers; ++k) {
    options.placement.devices.push_back(
        {DeviceName::parse(concat("/job:worker/replica:0/task:", k, "/device:CPU:0")),
         DeviceType::cpu});
  }
  options.placement.default_device = options.placement.devices.front().name;
  int64_t out = 0;
  for (const CutEdge& edge : run_pipeline(graph, options).edges) {
    if (edge.dtype != DType::invalid)
      out += edge.shape.elements() * static_cast<int64_t>(dtype_size(edge.dtype));
  }
  return out;
}

// What is in the memory of each worker: a third of the variables and of the slots.
TEST(Strategies, ShardedStateSpreadsVariablesAndSlots) {
  InProcessCluster cluster({{"worker", 3}});
  const auto layers = [](const Batch& batch) {
    Graph& g = batch[0].graph();
    Output x = mean(batch[0]);
    for (int i = 0; i < 6; ++i) x = x + mean(square(variable(g, concat("w", i), {100}) - x));
    return Losses{.loss = x};
  };
  const Program program("sharded_state", member(cluster, 0), Adam{1e-3}, layers);
  std::map<int, int64_t> bytes;
  for (const Output& each : program.graph.collection("variables"))
    bytes[*each.node->requested_device->task] += each.shape().elements() * 4;
  ASSERT_EQ(bytes.size(), 3u);
  // Two variables with two slots each; the rest are scalars.
  for (const auto& [task, of_task] : bytes) EXPECT_NEAR(of_task, 2 * 3 * 400, 40) << task;
}

Losses wide(const Batch& batch) {
  Graph& g = batch[0].graph();
  Output w = variable(g, "w", {1000}, initializers::zeros());
  return {.loss = mean(square(w - batch[0]))};
}

TEST(Strategies, NothingCrossesBetweenTwoMeans) {
  constexpr int n = 4;
  InProcessCluster cluster({{"worker", n}});
  for (const std::string name : {"local_sgd", "bmuf", "admm"}) {
    const Program program(name, member(cluster, 0), Sgd{rate}, wide);
    EXPECT_EQ(bytes_crossing(program.graph, program.training.step.node->name, n), 0) << name;
    // Each worker sends a quarter of 4,000 bytes to three others, and the mean of its own: at this
    // size it sends all of it, in one trip.
    EXPECT_EQ(bytes_crossing(program.graph, program.training.periodic[0].node.node->name, n),
              n * (n - 1) * 4000)
        << name;
  }
}

// ---- Variables ----

TEST(Strategies, EachReplicaBuildsTheSameLayers) {
  InProcessCluster cluster({{"ps", 1}, {"worker", 2}});
  const auto layers = [](const Batch& batch) {
    Output h = nn::dense(reshape(batch[0], {-1, 1}), 3, {.activation = relu});
    return Losses{.loss = mean(square(nn::dense(h, 2) - 1))};
  };
  for (const char* name : {"parameter_server:staleness=0", "all_reduce", "local_sgd",
                           "parameter_server", "easgd", "downpour", "admm"}) {
    const Program program(name, member(cluster, 0), Adam{1e-3}, layers);
    std::vector<std::string> names;
    for (const Output& each : trainable_variables(program.graph))
      names.push_back(variable_name(each));
    EXPECT_THAT(names, ElementsAre("dense/kernel", "dense/bias", "dense_1/kernel", "dense_1/bias"))
        << name;
  }
}

TEST(Strategies, EvaluationReadsTheTrainedVariables) {
  Graph g;
  const auto strategy = make_strategy("local_sgd", {});
  const Training training = strategy->minimize(g, Sgd{rate}, numbers(), follow);
  const Losses test = strategy->evaluate(g, numbers().next(g), follow);
  TrainingSession session(training, {.hooks = {stop_at(5)}});
  testing::internal::CaptureStdout();
  session.run();
  EXPECT_THAT(testing::internal::GetCapturedStdout(), HasSubstr("  w "));  // the metric
  EXPECT_FLOAT_EQ(session.session().run(test.metrics[0].second).item<float>(), descended(5));
}

TEST(Strategies, ATrainingResumesWhereItsCheckpointWasMade) {
  InProcessCluster cluster({{"worker", 2}});
  for (const char* name : {"local_sgd:steps=3", "bmuf:steps=3", "all_reduce", "admm:steps=3",
                           "tensor_parallel", "tensor_parallel:data=2"}) {
    const float undisturbed = Program(name, member(cluster, 0)).train(12);
    const ScratchDirectory directory;
    const TrainingOptions options{.directory = directory.path(), .checkpoint_steps = 6};
    Program(name, member(cluster, 0)).train(6, options);
    EXPECT_FLOAT_EQ(Program(name, member(cluster, 0)).train(12, options), undisturbed) << name;
  }
}

// ---- Names ----

TEST(Strategies, ReportMistakes) {
  const auto make = [](const char* text) { return [text] { make_strategy(text, {}); }; };
  expect_error_with(Code::invalid_argument,
                    "there is no strategy 'local_sdg'; did you mean 'local_sgd'?; there are: "
                    "one_device, hogwild",
                    make("local_sdg"));
  expect_error_with(Code::invalid_argument,
                    "strategy 'local_sgd' has no option 'tau'; it has: steps",
                    make("local_sgd:tau=3"));
  expect_error_with(Code::invalid_argument,
                    "strategy 'one_device' has no option 'steps': it has none",
                    make("one_device:steps=3"));
  expect_error_with(Code::invalid_argument,
                    "'steps' is not an option: write local_sgd:option=value",
                    make("local_sgd:steps"));
  expect_error_with(Code::invalid_argument, "the option 'steps' needs a whole number, got 'ten'",
                    make("local_sgd:steps=ten"));
  expect_error_with(Code::invalid_argument, "is given twice", make("local_sgd:steps=1:steps=2"));
  expect_error_with(Code::invalid_argument,
                    "the option 'drop_stale' does not go with backup_workers",
                    make("parameter_server:staleness=0:backup_workers=1:drop_stale=2"));
  expect_error_with(Code::invalid_argument, "needs true or false, got '1'",
                    make("bmuf:nesterov=1"));
  expect_error_with(Code::invalid_argument, "ring, servers, tree, got 'torus'",
                    make("all_reduce:algorithm=torus"));
  expect_error_with(Code::invalid_argument, "'workers_per_group' needs algorithm=hierarchical",
                    make("all_reduce:algorithm=ring:workers_per_group=2"));
  expect_error_with(Code::invalid_argument, "'workers_per_group' must not be negative, got -1",
                    make("all_reduce:workers_per_group=-1"));
  expect_error_with(Code::invalid_argument, "join does not go with adasum, compression or several",
                    make("all_reduce:join=true:compress=bf16"));
  expect_error_with(Code::invalid_argument, "the option 'filter' does not go with compress",
                    make("parameter_server:compress=bf16:filter=kkt:l1=1"));
  expect_error_with(Code::invalid_argument, "there are: none, adadelay, dc_asgd, adaptive_revision",
                    make("parameter_server:delay_aware=dcasgd"));
  expect_error_with(Code::invalid_argument, "trains on the tasks of the job 'worker'",
                    [] { make_strategy("all_reduce", ClusterSpec::parse(R"({"ps": ["h:1"]})")); });
  expect_error_with(Code::invalid_argument, "the cluster has no 'ps'", [] {
    make_strategy("parameter_server", ClusterSpec::parse(R"({"worker": ["h:1"]})"));
  });
}

TEST(Strategies, ModelsThatDifferBetweenReplicasAreErrors) {
  InProcessCluster cluster({{"ps", 1}, {"worker", 2}});
  int calls = 0;
  const auto differs = [&](const Batch& batch) {
    Graph& g = batch[0].graph();
    Output w = variable(g, ++calls == 1 ? "w" : "v", {}, initializers::constant(1));
    return Losses{.loss = mean(square(w - batch[0]))};
  };
  for (const char* name : {"all_reduce", "local_sgd", "parameter_server:staleness=0", "easgd"}) {
    calls = 0;
    expect_error_with(Code::invalid_argument, "must be a copy of 'v', which does not exist",
                      [&] { Program(name, member(cluster, 0), Sgd{1}, differs); });
  }
}

TEST(Strategies, AnotherProgramLeavesTheWorkToTheChief) {
  InProcessCluster cluster({{"worker", 2}});
  Program other("all_reduce", member(cluster, 1));
  EXPECT_TRUE(other.training.is_idle);
  TrainingSession session(other.training, {.hooks = {stop_at(5)}});
  EXPECT_TRUE(session.should_stop());
  session.run();
  expect_error_with(Code::failed_precondition, "this program has no session",
                    [&] { session.session(); });
}

// The loss alone is what Losses{.loss = …} is.
TEST(Strategies, AcceptAModelThatReturnsItsLoss) {
  const auto loss = [](const Batch& batch) { return follow(batch).loss; };
  EXPECT_EQ(Program("one_device", {}, Sgd{rate}, loss).train(3),
            Program("one_device", {}, Sgd{rate}).train(3));
  Graph g;
  const auto strategy = make_strategy("one_device", {});
  const Training training = strategy->minimize(g, Sgd{rate}, numbers(), loss);
  EXPECT_TRUE(strategy->evaluate(g, numbers().next(g), loss).loss);
}

}  // namespace
}  // namespace leat
