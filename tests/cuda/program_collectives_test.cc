// Collectives of programs that train together, each on the GPU of its own task, by the library that
// connects GPUs: here its stand-in.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/cuda/host_gpu.h"
#include "tests/support/expect_error.h"
#include "tests/support/strategy_programs.h"

namespace leat {
namespace {

using namespace std::chrono_literals;
using namespace strategy_programs;

constexpr int n = 3;
constexpr const char* strategy = "all_reduce:replicas=per_worker";

class GpuPrograms : public testing::Test {
 protected:
  GpuPrograms() {
    (void)host_gpu();
    options_.gpus = true;
  }

  static int64_t collectives() { return count_gpu_calls().collectives; }

  TaskOptions options_ = InProcessCluster::default_options();
};

TEST_F(GpuPrograms, TrainByTheLibrary) {
  for (const char* how : {"", ":bucket_bytes=64"}) {
    const int64_t before = collectives();
    std::vector<std::vector<float>> by_library, by_messages;
    {
      InProcessCluster cluster({{"worker", n}}, options_);
      by_library = trained(cluster, n, 6, concat(strategy, how), layers);
    }
    const int64_t made = collectives() - before;
    EXPECT_TRUE(*how == 0 ? made == 6 : made > 6 && made % 6 == 0) << made;
    {
      InProcessCluster cluster({{"worker", n}}, options_);
      by_messages = trained(cluster, n, 6, concat(strategy, how, ":algorithm=chunks"), layers);
    }
    EXPECT_EQ(collectives() - before, made);
    for (int k = 0; k < n; ++k) {
      EXPECT_EQ(by_library[k], by_library[0]);
      EXPECT_THAT(by_library[k], testing::Pointwise(testing::FloatNear(1e-6F), by_messages[0]));
    }
  }
}

// One task has no GPU: nobody waits for it in a collective.
TEST_F(GpuPrograms, OtherwiseByMessages) {
  const int64_t before = collectives();
  InProcessCluster cluster({{"worker", n}}, options_);
  set_gpus(0);
  cluster.kill("worker", 1);
  cluster.restart("worker", 1);
  set_gpus(1);
  const auto values = trained(cluster, n, 4, strategy, layers);
  for (const std::vector<float>& each : values)
    EXPECT_THAT(each, testing::Pointwise(testing::FloatNear(1e-6F), values[0]));
  EXPECT_EQ(collectives() - before, 0);
}

// Every step, each of the workers without the chief: killed before it, back with no variables.
TEST_F(GpuPrograms, ALostWorkerCostsNoStep) {
  constexpr int64_t steps = 4;
  const auto run = [&](int victim, int64_t at_step) {
    InProcessCluster cluster({{"worker", n}}, options_);
    return trained_through_a_loss(cluster, n, strategy, steps, victim, at_step);
  };
  const int64_t before = collectives();
  const std::vector<float> undisturbed = run(-1, 0);
  EXPECT_EQ(undisturbed, std::vector<float>(n, undisturbed[0]));
  EXPECT_EQ(collectives() - before, steps);
  for (int victim = 1; victim < n; ++victim) {
    for (int64_t at = 0; at < steps; ++at)
      EXPECT_EQ(run(victim, at), undisturbed) << "worker " << victim << " lost at step " << at;
  }
}

// Worker 1 fails in its third step, after it has said that it takes part: it has two collectives,
// and the second never gets its value.
TEST_F(GpuPrograms, AProgramThatFailsEndsTheCollectivesOfTheOthers) {
  InProcessCluster cluster({{"worker", n}}, options_);
  auto programs = in_programs(n, [&](int k) {
    Program program(concat(strategy, ":bucket_bytes=4"), member(cluster, k), Sgd{rate},
                    [k](const Batch& batch) {
                      Graph& g = batch[0].graph();
                      Output early = variable(g, "early", {3}, initializers::zeros());
                      Output late = variable(g, "late", {5}, initializers::zeros());
                      Losses out = follow(batch);
                      Output step;
                      {
                        const DeviceScope host(g, concat("/job:worker/task:", k, "/device:CPU:0"));
                        step = read_variable(global_step(g)) * int64_t{k == 1 ? 1 : 0};
                        step = cast(take(constant(g, {1, 1}), step), f32);
                      }
                      early = early * step;
                      out.loss = out.loss + sum(late) + sum(early * batch[0]);
                      return out;
                    });
    TrainingSession session(program.training, {.session = {.timeout = 20s}, .recoveries = 0});
    for (int i = 0; i < 5; ++i) session.step({});
  });
  expect_error_with(Code::invalid_argument, "is not in [0, 2)", [&] { programs[1].get(); });
  for (const int k : {0, 2}) {
    expect_error_with(Code::failed_precondition, "the program of member 1 has failed",
                      [&] { programs[k].get(); });
  }
}

TEST_F(GpuPrograms, DataThatEndsEndsTheTrainingOfAll) {
  InProcessCluster cluster({{"worker", n}}, options_);
  auto programs = in_programs(n, [&](int k) {
    Graph graph;
    const auto made = make_strategy(strategy, member(cluster, k));
    const Dataset data = datasets::from_tensor_slices(Tensor(f32, {10})).batch(1);
    const Training training = made->minimize(graph, Sgd{rate}, data, follow);
    TrainingSession session(training, {.session = {.timeout = 20s}});
    session.run();
    return session.global_step();
  });
  for (auto& each : programs) EXPECT_EQ(each.get(), 3);
}

}  // namespace
}  // namespace leat
