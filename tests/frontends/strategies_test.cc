// Strategies: each against its rule, written as a few lines of plain C++, on a cluster of tasks in
// this process.
#include "frontends/cpp/strategies/strategy.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <barrier>
#include <cmath>
#include <thread>

#include "frontends/cpp/nn/nn.h"
#include "frontends/cpp/optimizers/optimizers.h"
#include "frontends/cpp/training/training_hooks.h"
#include "frontends/cpp/training/training_session.h"
#include "graph/passes/pipeline.h"
#include "tests/support/eventually.h"
#include "tests/support/expect_error.h"
#include "tests/support/in_process_cluster.h"
#include "tests/support/scratch_directory.h"

namespace leat {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

constexpr float rate = 0.1F;
constexpr float start = 1;

// Element i is x(i).
float x(int64_t i) { return std::sin(static_cast<float>(i)); }

Dataset numbers() {
  Tensor values(f32, {240});
  for (int64_t i = 0; i < 240; ++i) values.data<float>()[i] = x(i);
  return datasets::from_tensors(values).repeat().batch(1);
}
// Of the worker k of n, in step i.
float x_of(int n, int k, int64_t i) { return x((i * n + k) % 240); }

// loss = (w - x)² / 2, so the gradient of w is w - x.
Losses follow(const Batch& batch) {
  Graph& g = batch[0].graph();
  Output w = variable(g, "w", {}, initializers::constant(start));
  return {.loss = mean(square(w - batch[0])) * 0.5F, .metrics = {{"w", w * 1.0F}}};
}

// What a program of worker `k` does.
struct Program {
  Program(const std::string& strategy, const StrategyCluster& cluster,
          const Optimizer& optimizer = Sgd{rate}, const ModelFunction& model = follow)
      : made(make_strategy(strategy, cluster)),
        training(made->minimize(graph, optimizer, numbers(), model)) {}

  // Until that global step; returns the variable w.
  float train(int64_t steps, TrainingOptions options = {}) {
    options.hooks.push_back(stop_at(steps));
    TrainingSession session(training, options);
    while (!session.should_stop()) session.step({});
    session.run();
    if (training.is_idle) return 0;
    const float w = session.session().run(variable_named(graph, "w")).item<float>();
    session.close();
    return w;
  }

  Graph graph;
  std::unique_ptr<Strategy> made;
  Training training;
};

StrategyCluster member(InProcessCluster& cluster, int k) {
  return {cluster.spec(), {"worker", k}, cluster.target("worker", k)};
}

// Plain gradient descent.
float descended(int64_t steps) {
  float w = start;
  for (int64_t i = 0; i < steps; ++i) w -= rate * (w - x(i));
  return w;
}

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
                    "hogwild:threads=1", "parameter_server:delay_aware=dc_asgd",
                    "parameter_server:drop_stale=0", "parameter_server:staleness=0:servers=worker",
                    "parameter_server:staleness=0:backup_workers=1", "all_reduce:adasum=true",
                    "local_sgd", "local_sgd:steps=3", "model_average", "simu_parallel_sgd",
                    "bmuf:steps=3", "downpour:local_rate=0"),
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
  for (const char* strategy : {"all_reduce", "all_reduce:algorithm=chunks", "byteps",
                               "sharded_state", "parameter_server:staleness=0"})
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

TEST(Strategies, LocalSgdTakesTheMeanOfWhatWorkersHaveReached) {
  constexpr int n = 3, tau = 4;
  InProcessCluster cluster({{"worker", n}});
  std::vector<float> w(n, start);
  for (int i = 0; i < 10; ++i) {
    for (int k = 0; k < n; ++k) w[k] -= rate * (w[k] - x_of(n, k, i));
    if ((i + 1) % tau != 0 && i != 9) continue;  // and at the end
    float mean = 0;
    for (const float each : w) mean += each / n;
    w.assign(n, mean);
  }
  EXPECT_NEAR(Program("local_sgd:steps=4", member(cluster, 0)).train(10), w[0], 1e-6);
}

TEST(Strategies, SimuParallelSgdTakesOneMeanAtTheEnd) {
  constexpr int n = 3;
  InProcessCluster cluster({{"worker", n}});
  float mean = 0;
  for (int k = 0; k < n; ++k) {
    float w = start;
    for (int i = 0; i < 9; ++i) w -= rate * (w - x_of(n, k, i));
    mean += w / n;
  }
  EXPECT_NEAR(Program("simu_parallel_sgd", member(cluster, 0)).train(9), mean, 1e-6);
}

TEST(Strategies, BlockMomentumFollowsItsFormula) {
  constexpr int n = 2, tau = 3;
  constexpr float momentum = 0.5F, zeta = 0.9F;
  InProcessCluster cluster({{"worker", n}});
  for (const bool nesterov : {false, true}) {
    std::vector<float> w(n, start);
    float begun = start, delta = 0;
    for (int i = 0; i < 12; ++i) {
      for (int k = 0; k < n; ++k) w[k] -= rate * (w[k] - x_of(n, k, i));
      if ((i + 1) % tau != 0) continue;
      const float mean = (w[0] + w[1]) / 2;
      delta = momentum * delta + zeta * (begun - mean);
      begun -= delta;
      if (nesterov) begun -= momentum * delta;
      w.assign(n, begun);
    }
    const std::string strategy =
        concat("bmuf:steps=3:momentum=0.5:rate=0.9:nesterov=", nesterov ? "true" : "false");
    EXPECT_NEAR(Program(strategy, member(cluster, 0)).train(12), w[0], 1e-6) << strategy;
  }
}

TEST(Strategies, AdmmFollowsItsFormula) {
  constexpr int n = 3, steps = 5;
  constexpr float rho = 0.5F;
  InProcessCluster cluster({{"worker", n}});
  std::vector<float> w(n, start), u(n, 0);
  float z = start;
  for (int i = 0; i < 20; ++i) {
    for (int k = 0; k < n; ++k) w[k] -= rate * (w[k] - x_of(n, k, i) + rho * (w[k] - z + u[k]));
    if ((i + 1) % steps != 0) continue;
    z = 0;
    for (int k = 0; k < n; ++k) z += (w[k] + u[k]) / n;
    for (int k = 0; k < n; ++k) u[k] += w[k] - z;
  }
  EXPECT_NEAR(Program("admm:steps=5:rho=0.5", member(cluster, 0)).train(20), z, 1e-6);
}

TEST(Strategies, EasgdTiesEachWorkerToTheCentre) {
  constexpr int n = 2, tau = 2;
  constexpr float alpha = 0.25F;
  InProcessCluster cluster({{"ps", 1}, {"worker", n}});
  const std::string strategy = "easgd:steps=2:moving_rate=0.25";
  // One program after the other: this schedule is known.
  Program first(strategy, member(cluster, 0)), second(strategy, member(cluster, 1));
  float c = start;
  const auto worker = [&](int k, int steps) {
    float w = c;  // a program begins at the centre
    for (int i = 0; i < steps; ++i) {
      w -= rate * (w - x_of(n, k, i));
      if ((i + 1) % tau != 0) continue;
      const float e = alpha * (w - c);
      w -= e;
      c += e;
    }
    return c;
  };
  EXPECT_NEAR(first.train(6), worker(0, 6), 1e-6);
  // The global step counts the steps of both: 6 are made.
  EXPECT_NEAR(second.train(10, {.is_chief = false}), worker(1, 4), 1e-6);
}

TEST(Strategies, DownpourFetchesAndPushesAtItsOwnPace) {
  constexpr int n = 1;
  InProcessCluster cluster({{"ps", 1}, {"worker", n}});
  constexpr float local = 0.05F;
  float server = start, w = start, sum = 0;
  for (int i = 0; i < 12; ++i) {
    const float g = w - x_of(n, 0, i);
    w -= local * g;
    sum += g;
    if ((i + 1) % 2 == 0) {
      server -= rate * sum;
      sum = 0;
    }
    if ((i + 1) % 3 == 0) w = server;
  }
  EXPECT_NEAR(Program("downpour:push=2:fetch=3:local_rate=0.05", member(cluster, 0)).train(12),
              server, 1e-6);
}

TEST(Strategies, CompressedGradientsAreRounded) {
  InProcessCluster cluster({{"ps", 1}, {"worker", 1}});
  for (const char* kind : {"", ":staleness=0", ":staleness=1"}) {
    const std::string strategy = concat("parameter_server:compress=bf16", kind);
    const float w = Program(strategy, member(cluster, 0)).train(7);
    EXPECT_NEAR(w, descended(7), 0.01) << strategy;
    EXPECT_NE(w, descended(7)) << strategy;
  }
}

// The first program computes with variables that the second one has changed three times since.
struct Late {
  explicit Late(const std::string& strategy)
      : late(strategy, member(cluster, 0)), other(strategy, member(cluster, 1)) {
    TrainingSession session(late.training), fast(other.training, {.is_chief = false});
    for (int i = 0; i < 3; ++i) fast.step({});
    session.step({});
    w = session.session().run(variable_named(late.graph, "w")).item<float>();
  }
  InProcessCluster cluster{{{"ps", 1}, {"worker", 2}}};
  Program late, other;
  float w = 0;
};

TEST(Strategies, DelayCompensationMovesALateGradient) {
  float w = start;
  for (int i = 0; i < 3; ++i) w -= rate * (w - x_of(2, 1, i));
  const float g = start - x_of(2, 0, 0);
  const float late = w - rate * (g + 0.5F * g * g * (w - start));
  EXPECT_NEAR(Late("parameter_server:delay_aware=dc_asgd:lambda=0.5").w, late, 1e-6);
  EXPECT_NEAR(Late("parameter_server:delay_aware=dc_asgd:lambda=0").w, w - rate * g, 1e-6);
}

TEST(Strategies, AdaDelayShrinksALateGradient) {
  const float beta = 2;
  float w = start;
  for (int i = 0; i < 3; ++i)
    w -= rate * (w - x_of(2, 1, i)) / (beta + std::sqrt(static_cast<float>(i)));
  w -= rate * (start - x_of(2, 0, 0)) / (beta + std::sqrt(3.0F + 3.0F));
  EXPECT_NEAR(Late("parameter_server:delay_aware=adadelay:beta=2").w, w, 1e-6);
}

TEST(Strategies, GradientsThatAreTooLateAreDropped) {
  float w = start;
  for (int i = 0; i < 3; ++i) w -= rate * (w - x_of(2, 1, i));
  Late dropped("parameter_server:drop_stale=2");
  EXPECT_FLOAT_EQ(dropped.w, w);
  Session session(dropped.late.graph, {.target = dropped.cluster.target("worker", 0)});
  EXPECT_EQ(session.run(variable_named(dropped.late.graph, "dropped_gradients")).item<int64_t>(),
            1);
  EXPECT_FLOAT_EQ(Late("parameter_server:drop_stale=3").w, w - rate * (start - x_of(2, 0, 0)));
}

// ---- Programs that run at the same time ----

TEST(Strategies, BackupWorkersDropWhatComesTooLate) {
  constexpr int n = 3, rounds = 3, steps = 30;
  InProcessCluster cluster({{"ps", 2}, {"worker", n}});
  float w = start;
  for (int i = 0; i < steps; ++i) {
    float sum = 0;
    for (int k = 0; k < n - 1; ++k) sum += w - x_of(n, k, i);
    w -= rate * sum / (n - 1);
  }
  const std::string strategy = "parameter_server:staleness=0:backup_workers=1";
  float end = 0;
  int64_t dropped = 0;
  std::barrier all(n);
  const auto run = [&](int k) {
    Program program(strategy, member(cluster, k));
    TrainingSession session(program.training);
    for (int round = 0; round < rounds; ++round) {
      all.arrive_and_wait();
      for (int i = 0; k < n - 1 && i < steps / rounds; ++i) session.step({});
      all.arrive_and_wait();
      if (k == n - 1) session.step({});  // with variables of before
    }
    all.arrive_and_wait();
    if (k == 0) {
      const auto read = [&](const char* name) {
        return session.session().run(variable_named(program.graph, name));
      };
      end = read("w").item<float>();
      dropped = read("dropped_gradients").item<int64_t>();
    }
    all.arrive_and_wait();
  };
  std::vector<std::thread> threads;
  for (int k = 0; k < n; ++k) threads.emplace_back(run, k);
  for (std::thread& each : threads) each.join();
  EXPECT_NEAR(end, w, 1e-5);
  EXPECT_EQ(dropped, rounds);
}

TEST(Strategies, MultiversoGivesAllWorkersTheSameVariables) {
  constexpr int n = 3, steps = 20;
  InProcessCluster cluster({{"ps", 1}, {"worker", n}});
  float w = start;
  for (int i = 0; i < steps; ++i) {
    float sum = 0;
    for (int k = 0; k < n; ++k) sum += w - x_of(n, k, i);
    w -= rate * sum;
  }
  std::barrier all_have_joined(n);
  std::vector<float> ends(n);
  std::vector<std::thread> threads;
  for (int k = 0; k < n; ++k) {
    threads.emplace_back([&, k] {
      Program program("multiverso", member(cluster, k));
      TrainingSession session(program.training);
      all_have_joined.arrive_and_wait();
      for (int i = 0; i < steps; ++i) session.step({});
      const Output copy = program.made->replicas().copy_of(variable_named(program.graph, "w"), k);
      ends[static_cast<size_t>(k)] = session.session().run(copy).item<float>();
    });
  }
  for (std::thread& each : threads) each.join();
  for (const float end : ends) EXPECT_NEAR(end, w, 1e-5);
}

// The gradient is 1, and so is the rate: the variable counts updates.
Losses count_updates(const Batch& batch) {
  Graph& g = batch[0].graph();
  Output w = variable(g, "w", {}, initializers::constant(0));
  return {.loss = sum(w + batch[0] * 0)};
}

TEST(Strategies, AsynchronousOnesLoseNoUpdate) {
  constexpr int n = 3;
  for (const std::string strategy :
       {"parameter_server", "parameter_server:staleness=1", "downpour:local_rate=0"}) {
    InProcessCluster cluster({{"ps", 1}, {"worker", n}});
    std::vector<std::thread> threads;
    std::vector<float> seen(n);
    for (int k = 0; k < n; ++k) {
      threads.emplace_back([&, k] {
        Program program(strategy, member(cluster, k), Sgd{1}, count_updates);
        TrainingSession session(program.training);
        for (int i = 0; i < 40; ++i) session.step({});
        session.close();
      });
    }
    for (std::thread& each : threads) each.join();
    Program reader(strategy, member(cluster, 0), Sgd{1}, count_updates);
    Session session(reader.graph, {.target = cluster.target("worker", 0)});
    EXPECT_EQ(session.run(variable_named(reader.graph, "w")).item<float>(), -40.0F * n) << strategy;
    EXPECT_EQ(session.run(variable_named(reader.graph, "global_step")).item<int64_t>(), 40 * n)
        << strategy;
  }
}

TEST(Strategies, ThreadsOfOneProcessLoseNoUpdate) {
  Program program("hogwild:threads=4", {}, Sgd{1}, count_updates);
  TrainingSession session(program.training, {.hooks = {stop_at(2'000)}});
  session.run();
  const auto steps = session.session().run(variable_named(program.graph, "global_step"));
  EXPECT_GE(steps.item<int64_t>(), 2'000);
  EXPECT_EQ(session.session().run(variable_named(program.graph, "w")).item<float>(),
            -static_cast<float>(steps.item<int64_t>()));
}

TEST(Strategies, AnErrorOfAThreadEndsTheTraining) {
  int calls = 0;
  const auto fails = [&](const Batch& batch) {
    Losses losses = count_updates(batch);
    if (++calls == 2)
      losses.loss = losses.loss * check_numerics(1 / sum(batch[0] * 0), "the second thread");
    return losses;
  };
  Program program("hogwild:threads=2", {}, Sgd{1}, fails);
  TrainingSession session(program.training);
  expect_error_with(Code::invalid_argument, "the second thread", [&] {
    for (int i = 0; i < 100'000; ++i) session.step({});
  });
}

TEST(Strategies, TheFastestWorkerStaysWithinTheStaleness) {
  constexpr int n = 2, staleness = 3, steps = 40;
  InProcessCluster cluster({{"ps", 1}, {"worker", n}});
  std::atomic<int> slow_steps = 0, fast_steps = 0, most = 0;
  std::barrier both_have_joined(n);
  const auto run = [&](int k) {
    Program program("parameter_server:staleness=3", member(cluster, k));
    TrainingSession session(program.training);
    both_have_joined.arrive_and_wait();
    for (int i = 0; i < steps; ++i) {
      // The slow one goes on when the fast one is as far ahead as it may be.
      if (k == 0) {
        EXPECT_TRUE(eventually([&] { return fast_steps >= std::min(i + staleness, steps); }));
      }
      session.step({});
      if (k == 0) {
        slow_steps = i + 1;
      } else {
        fast_steps = i + 1;
        most = std::max<int>(most, fast_steps - slow_steps);
      }
    }
    session.close();
  };
  std::thread slow(run, 0), fast(run, 1);
  slow.join();
  fast.join();
  // Its step i + 1 ends when the slow one has ticked, just before it counts here.
  EXPECT_LE(most, staleness + 1);
  EXPECT_GE(most, staleness);
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
  for (const char* name : {"local_sgd:steps=3", "bmuf:steps=3", "all_reduce", "admm:steps=3"}) {
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
                    "one_device, parameter_server",
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
  expect_error_with(Code::invalid_argument, "direct, chunks or servers, got 'ring'",
                    make("all_reduce:algorithm=ring"));
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
