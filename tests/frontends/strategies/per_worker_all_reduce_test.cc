// All-reduce between programs: the same numbers as one program for all, and what a lost worker
// costs.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <future>
#include <optional>

#include "frontends/cpp/nn/dense.h"
#include "frontends/cpp/strategies/per_worker_all_reduce.h"
#include "tests/support/expect_error.h"
#include "tests/support/scratch_directory.h"
#include "tests/support/strategy_programs.h"

namespace leat {
namespace {

using namespace strategy_programs;
using namespace std::chrono_literals;
using testing::HasSubstr;

TEST(PerWorkerAllReduce, GivesTheBitsOfOneProgramForAll) {
  for (const int n : {1, 2, 3, 4}) {
    for (const char* how : {"algorithm=direct", "algorithm=chunks", "bucket_bytes=64"}) {
      InProcessCluster cluster({{"worker", n}});
      const auto expected = trained(cluster, n, 6, concat("all_reduce:", how), layers);
      for (int k = 0; k < n; ++k) {
        cluster.kill("worker", k);
        cluster.restart("worker", k);
      }
      const auto values =
          trained(cluster, n, 6, concat("all_reduce:replicas=per_worker:", how), layers);
      for (int k = 0; k < n; ++k) EXPECT_EQ(values[k], expected[0]) << n << " workers, " << how;
    }
  }
}

TEST(PerWorkerAllReduce, TakesTheMeanOfAllGradients) {
  constexpr int n = 3;
  InProcessCluster cluster({{"worker", n}});
  float w = start;
  for (int i = 0; i < 8; ++i) {
    float g = 0;
    for (int k = 0; k < n; ++k) g += (w - x_of(n, k, i)) / n;
    w -= rate * g;
  }
  std::vector<std::future<float>> programs;
  for (int k = 0; k < n; ++k) {
    programs.push_back(std::async(std::launch::async, [&, k] {
      return Program("all_reduce:replicas=per_worker", member(cluster, k)).train(8);
    }));
  }
  for (auto& each : programs) EXPECT_NEAR(each.get(), w, 1e-6);
}

// Every step, each of the workers without the chief: killed before it, back with no variables.
TEST(PerWorkerAllReduce, ALostWorkerCostsNoStep) {
  constexpr int n = 3, steps = 5;
  const auto run = [&](int victim, int64_t at_step) {
    InProcessCluster cluster({{"worker", n}});
    return trained_through_a_loss(cluster, n, "all_reduce:replicas=per_worker", steps, victim,
                                  at_step);
  };
  const std::vector<float> undisturbed = run(-1, 0);
  EXPECT_EQ(undisturbed, std::vector<float>(n, undisturbed[0]));
  for (int victim = 1; victim < n; ++victim) {
    for (int64_t at = 0; at < steps; ++at)
      EXPECT_EQ(run(victim, at), undisturbed) << "worker " << victim << " lost at step " << at;
  }
}

// The chief has the variables: without it, all go back to its checkpoint.
TEST(PerWorkerAllReduce, ALostChiefGoesBackToItsCheckpoint) {
  constexpr int n = 2, steps = 6;
  const auto run = [&](bool is_disturbed) {
    InProcessCluster cluster({{"worker", n}});
    const ScratchDirectory directory;
    bool is_killed = !is_disturbed;
    std::vector<std::future<float>> programs;
    for (int k = 0; k < n; ++k) {
      programs.push_back(std::async(std::launch::async, [&, k] {
        Program program("all_reduce:replicas=per_worker", member(cluster, k), Momentum{0.1});
        TrainingOptions options{.checkpoint_steps = 2};
        if (k == 0) options.directory = directory.path();
        TrainingSession session(program.training, options);
        while (session.global_step() < steps) {
          if (k == 0 && session.global_step() == 3 && !std::exchange(is_killed, true)) {
            cluster.kill("worker", 0);
            cluster.restart("worker", 0);
          }
          session.step({});
        }
        const Output w = variable_named(program.graph, "w");
        return session.session()
            .run(k == 0 ? w : program.made->replicas().copy_of(w, k))
            .item<float>();
      }));
    }
    const float first = programs[0].get();
    EXPECT_EQ(programs[1].get(), first);
    return first;
  };
  EXPECT_EQ(run(true), run(false));
}

// All programs say the same.
TEST(PerWorkerAllReduce, NamesTheFirstDifferenceOfTwoModels) {
  InProcessCluster cluster({{"worker", 2}});
  std::vector<std::future<void>> programs;
  for (int k = 0; k < 2; ++k) {
    programs.push_back(std::async(std::launch::async, [&, k] {
      Program program("all_reduce:replicas=per_worker", member(cluster, k), Sgd{rate},
                      [k](const Batch& batch) {
                        Graph& g = batch[0].graph();
                        Output w = variable(g, "w", {3}, initializers::zeros());
                        Output v = variable(g, "v", {k == 0 ? 4 : 5}, initializers::zeros());
                        return Losses{.loss = sum(square(w - batch[0])) + sum(v)};
                      });
      TrainingSession session(program.training);
    }));
  }
  for (auto& each : programs)
    expect_error_with(
        Code::invalid_argument,
        "member 0 has 'v: float[4] in bucket_0, sent whole' where member 1 has 'v: float[5] in "
        "bucket_0, sent whole'; all must build the same model with the same options",
        [&] { each.get(); });
}

TEST(PerWorkerAllReduce, AWaitSaysForWhom) {
  InProcessCluster cluster({{"worker", 3}});
  Program program("all_reduce:replicas=per_worker", member(cluster, 0));
  expect_error_with(
      Code::deadline_exceeded, "all begin together; not here yet: member 1 and member 2", [&] {
        TrainingSession session(program.training, {.session = {.timeout = 300ms}, .recoveries = 0});
      });
}

// The chief waits for the member at the beginning, and in its first step.
TEST(PerWorkerAllReduce, AProgramThatFailsEndsTheWaitsOfTheOthers) {
  InProcessCluster cluster({{"worker", 2}});
  std::vector<std::future<void>> programs;
  for (int k = 0; k < 2; ++k) {
    programs.push_back(std::async(std::launch::async, [&, k] {
      Program program(
          "all_reduce:replicas=per_worker", member(cluster, k), Sgd{rate}, [k](const Batch& batch) {
            Output own = variable(batch[0].graph(), "v", {k == 0 ? 4 : 5},
                                  {.initializer = initializers::zeros(), .trainable = false});
            Losses out = follow(batch);
            out.loss = out.loss + sum(own);
            return out;
          });
      TrainingSession session(program.training);
      session.step({});
    }));
  }
  expect_error_with(Code::failed_precondition,
                    "the program of member 1 has failed before step 0: see its own error",
                    [&] { programs[0].get(); });
  expect_error_with(Code::invalid_argument, "variable 'v' has shape [4]",
                    [&] { programs[1].get(); });
}

TEST(PerWorkerAllReduce, DataThatEndsEndsTheTrainingOfAll) {
  InProcessCluster cluster({{"worker", 2}});
  std::vector<std::future<int64_t>> programs;
  for (int k = 0; k < 2; ++k) {
    programs.push_back(std::async(std::launch::async, [&, k] {
      Graph graph;
      const auto strategy = make_strategy("all_reduce:replicas=per_worker", member(cluster, k));
      const Dataset data = datasets::from_tensor_slices(Tensor(f32, {7})).batch(1);
      const Training training = strategy->minimize(graph, Sgd{rate}, data, follow);
      TrainingSession session(training);
      session.run();
      return session.global_step();
    }));
  }
  for (auto& each : programs) EXPECT_EQ(each.get(), 3);
}

TEST(PerWorkerAllReduce, RejectsWhatItDoesNotDo) {
  const ClusterSpec spec = ClusterSpec::parse(R"({"cluster":{"worker":["h:1","h:2"]}})");
  const StrategyCluster cluster(spec, {"worker", 1}, "grpc://h:2");
  expect_error_with(Code::invalid_argument, "cannot be per_worker with compress",
                    [&] { make_strategy("all_reduce:replicas=per_worker:join=true", cluster); });
  expect_error_with(Code::invalid_argument, "goes directly or in chunks", [&] {
    make_strategy("all_reduce:replicas=per_worker:algorithm=servers", cluster);
  });
  expect_error_with(Code::invalid_argument, "must be in_graph or per_worker, got 'both'",
                    [&] { make_strategy("all_reduce:replicas=both", cluster); });
}

}  // namespace
}  // namespace leat
