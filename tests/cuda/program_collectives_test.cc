// Collectives of programs that train together, each on the GPU of its own task, by the library that
// connects GPUs: here its stand-in.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <future>

#include "frontends/cpp/nn/dense.h"
#include "tests/cuda/host_gpu.h"
#include "tests/support/expect_error.h"
#include "tests/support/scratch_directory.h"
#include "tests/support/strategy_programs.h"

namespace leat {
namespace {

using namespace std::chrono_literals;
using namespace strategy_programs;

constexpr int n = 3;
constexpr const char* strategy = "all_reduce:replicas=per_worker";

Losses layers(const Batch& batch) {
  const auto random = initializers::random_normal(0, 0.5, 7);
  Output h = nn::dense(reshape(batch[0], {1, 1}) * constant(batch[0].graph(), {1.0F, -2.0F, 0.5F}),
                       11, {.activation = tanh, .kernel_initializer = random, .name = "first"});
  Output out = nn::dense(h, 1, {.kernel_initializer = random, .name = "second"});
  return {.loss = mean(square(out - 0.3F * batch[0]))};
}

class GpuPrograms : public testing::Test {
 protected:
  GpuPrograms() {
    (void)host_gpu();
    options_.gpus = true;
  }

  static int64_t collectives() { return count_gpu_calls().collectives; }

  // The program of worker k in a thread of its own.
  template <class Run>
  static auto in_programs(const Run& run) {
    std::vector<std::future<decltype(run(0))>> out;
    for (int k = 0; k < n; ++k) out.push_back(std::async(std::launch::async, run, k));
    return out;
  }

  // Every number of the model after some steps, of each program.
  static std::vector<std::vector<float>> trained(InProcessCluster& cluster, const std::string& how,
                                                 int64_t steps) {
    auto programs = in_programs([&](int k) {
      Program program(concat(strategy, how), member(cluster, k), Momentum{0.1}, layers);
      TrainingSession session(program.training, {.session = {.timeout = 20s}});
      for (int64_t i = 0; i < steps; ++i) session.step({});
      std::vector<float> out;
      for (const Output& variable : trainable_variables(program.graph)) {
        const Output own = k == 0 ? variable : program.made->replicas().copy_of(variable, k);
        for (const float value : session.session().run(own).to_vector<float>())
          out.push_back(value);
      }
      return out;
    });
    std::vector<std::vector<float>> out;
    for (auto& each : programs) out.push_back(each.get());
    return out;
  }

  TaskOptions options_ = InProcessCluster::default_options();
};

TEST_F(GpuPrograms, TrainByTheLibrary) {
  for (const char* how : {"", ":bucket_bytes=64"}) {
    const int64_t before = collectives();
    std::vector<std::vector<float>> by_library, by_messages;
    {
      InProcessCluster cluster({{"worker", n}}, options_);
      by_library = trained(cluster, how, 6);
    }
    const int64_t made = collectives() - before;
    EXPECT_TRUE(*how == 0 ? made == 6 : made > 6 && made % 6 == 0) << made;
    {
      InProcessCluster cluster({{"worker", n}}, options_);
      by_messages = trained(cluster, concat(how, ":algorithm=chunks"), 6);
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
  const auto values = trained(cluster, "", 4);
  for (const std::vector<float>& each : values)
    EXPECT_THAT(each, testing::Pointwise(testing::FloatNear(1e-6F), values[0]));
  EXPECT_EQ(collectives() - before, 0);
}

// Every step, each of the workers without the chief: killed before it, back with no variables.
TEST_F(GpuPrograms, ALostWorkerCostsNoStep) {
  constexpr int64_t steps = 4;
  const auto run = [&](int victim, int64_t at_step) {
    InProcessCluster cluster({{"worker", n}}, options_);
    std::atomic<bool> is_killed = false;
    auto programs = in_programs([&](int k) {
      Program program(strategy, member(cluster, k), Momentum{0.1});
      TrainingSession session(program.training, {.session = {.timeout = 20s}});
      while (session.global_step() < steps) {
        if (k == victim && session.global_step() == at_step && !is_killed.exchange(true)) {
          cluster.kill("worker", k);
          cluster.restart("worker", k);
        }
        session.step({});
      }
      const Output w = variable_named(program.graph, "w");
      const Output own = k == 0 ? w : program.made->replicas().copy_of(w, k);
      return session.session().run(own).item<float>();
    });
    std::vector<float> out;
    for (auto& each : programs) out.push_back(each.get());
    return out;
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
  auto programs = in_programs([&](int k) {
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
  auto programs = in_programs([&](int k) {
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
