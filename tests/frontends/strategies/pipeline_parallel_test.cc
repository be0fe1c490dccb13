// Pipelines: schedules, cuts, and training that gives what one device gives.
#include "frontends/cpp/strategies/pipeline_parallel.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <random>

#include "frontends/cpp/control_flow/cond.h"
#include "frontends/cpp/control_flow/while_loop.h"
#include "frontends/cpp/nn/nn.h"
#include "frontends/cpp/optimizers/optimizers.h"
#include "frontends/cpp/strategies/one_device.h"
#include "frontends/cpp/strategies/parts/micro_batches.h"
#include "frontends/cpp/strategies/parts/stages.h"
#include "frontends/cpp/training/training_hooks.h"
#include "frontends/cpp/training/training_session.h"
#include "tests/support/expect_error.h"
#include "tests/support/in_process_cluster.h"

namespace leat {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using enum PipelineSchedule;

// ---- Schedules ----

// "F0 F1 B0": the blocks of a stage.
std::string order_of(const std::vector<PipelineBlock>& blocks, int stage) {
  std::string out;
  for (const PipelineBlock& block : blocks) {
    if (block.stage != stage) continue;
    out += concat(out.empty() ? "" : " ", block.is_backward ? "B" : "F", block.micro_batch);
  }
  return out;
}

TEST(PipelineSchedule, OneForwardOneBackwardAlternatesAfterItsWarmUp) {
  const auto blocks = pipeline_blocks(one_f_one_b, 3, 4);
  EXPECT_EQ(order_of(blocks, 0), "F0 F1 F2 B0 F3 B1 B2 B3");
  EXPECT_EQ(order_of(blocks, 1), "F0 F1 B0 F2 B1 F3 B2 B3");
  EXPECT_EQ(order_of(blocks, 2), "F0 B0 F1 B1 F2 B2 F3 B3");
  EXPECT_THAT(micro_batches_kept(blocks, 3), ElementsAre(3, 2, 1));
}

TEST(PipelineSchedule, GpipeComputesAllForwardsFirst) {
  const auto blocks = pipeline_blocks(gpipe, 2, 3);
  EXPECT_EQ(order_of(blocks, 0), "F0 F1 F2 B2 B1 B0");
  EXPECT_EQ(order_of(blocks, 1), "F0 F1 F2 B2 B1 B0");
  EXPECT_THAT(micro_batches_kept(blocks, 2), ElementsAre(3, 3));
}

TEST(PipelineSchedule, StagesThatCostTheSameIdleForTheKnownPartOfAStep) {
  for (const auto schedule : {gpipe, one_f_one_b}) {
    for (const int k : {1, 2, 3, 5}) {
      for (const int m : {1, 2, 4, 9}) {
        const auto blocks = pipeline_blocks(schedule, k, m);
        EXPECT_EQ(blocks.size(), static_cast<size_t>(2 * k * m));
        const std::vector<double> forward(static_cast<size_t>(k), 1), backward(forward.size(), 2);
        const PipelineTimes times = pipeline_times(blocks, forward, backward);
        for (const double bubble : times.bubble)
          EXPECT_NEAR(bubble, (k - 1.0) / (m + k - 1.0), 1e-12) << k << " " << m;
      }
    }
  }
}

TEST(PipelineSchedule, IsDrawn) {
  const auto blocks = pipeline_blocks(one_f_one_b, 2, 2);
  const PipelineTimes times =
      pipeline_times(blocks, std::vector<double>{1, 1}, std::vector<double>{1, 1});
  EXPECT_EQ(draw_pipeline(blocks, times, 12),
            "stage 0 F0F1..B0..B1\n"
            "stage 1 ..F0B0F1B1..\n");
}

TEST(PipelineSchedule, IsFoundByName) {
  EXPECT_EQ(pipeline_schedule_named("1f1b"), one_f_one_b);
  EXPECT_EQ(pipeline_schedule_named("gpipe"), gpipe);
  expect_error([] { pipeline_schedule_named("gpip"); }, Code::invalid_argument,
               "there is no pipeline schedule 'gpip'; there are: gpipe, 1f1b");
}

// ---- Cuts ----

TEST(Stages, AreCutWhereTheMostExpensiveOneCostsLeast) {
  const std::vector<double> costs = {4, 1, 1, 1, 1, 4};
  EXPECT_THAT(cut_into_stages(costs, std::vector<double>(6), 3), ElementsAre(0, 1, 5));
  EXPECT_THAT(cut_into_stages(costs, std::vector<double>(6), 1), ElementsAre(0));
  const std::vector<double> before = {0, no_cut, 0, 0, 0, 0};
  EXPECT_THAT(cut_into_stages(costs, before, 2), ElementsAre(0, 3));
  const std::vector<double> expensive = {0, 0, 0, 5, 0, 0};
  EXPECT_THAT(cut_into_stages(costs, expensive, 2), testing::Contains(testing::AnyOf(2, 4)));
  expect_error_with(Code::invalid_argument, "can be cut in 1 places, so not into 3 stages", [] {
    cut_into_stages(std::vector<double>{1, 1, 1}, std::vector<double>{0, no_cut, 0}, 3);
  });
}

// The largest stage of the best cut, by trying all.
double best_of_all(std::span<const double> costs, std::span<const double> before, size_t begin,
                   int stages) {
  const auto border = [&](size_t i) { return i == 0 || i == costs.size() ? 0 : before[i]; };
  double sum = border(begin), best = no_cut;
  for (size_t end = begin + 1; end <= costs.size(); ++end) {
    sum += costs[end - 1];
    if (stages == 1) {
      if (end == costs.size()) best = sum;
    } else if (end < costs.size()) {
      best =
          std::min(best, std::max(sum + border(end), best_of_all(costs, before, end, stages - 1)));
    }
  }
  return best;
}

TEST(Stages, NoCutIsBetter) {
  std::mt19937 random(1);
  std::uniform_int_distribution<int> number(0, 20);
  for (int trial = 0; trial < 200; ++trial) {
    std::vector<double> costs(9), before(9);
    for (double& cost : costs) cost = number(random);
    for (double& cost : before) cost = number(random) < 4 ? no_cut : number(random) / 4.0;
    const int stages = 1 + trial % 4;
    const double best = best_of_all(costs, before, 0, stages);
    if (best == no_cut) continue;
    const auto begins = cut_into_stages(costs, before, stages);
    double largest = 0;
    for (size_t s = 0; s < begins.size(); ++s) {
      const size_t end = s + 1 < begins.size() ? begins[s + 1] : costs.size();
      double sum = (s == 0 ? 0 : before[begins[s]]) + (end == costs.size() ? 0 : before[end]);
      for (size_t i = begins[s]; i < end; ++i) sum += costs[i];
      largest = std::max(largest, sum);
    }
    EXPECT_DOUBLE_EQ(largest, best);
  }
}

TEST(Stages, MeasuredNodesCostTime) {
  Graph g;
  Output a = variable(g, "a", {300, 300}, initializers::ones());
  Output b = matmul(a, a), c = b + 1.0F;
  const NodeCosts costs = measured_costs(g, {sum(c)});
  const auto of = [&](const Output& x) { return costs.seconds[static_cast<size_t>(x.node->id)]; };
  EXPECT_GT(of(b), of(c));
  EXPECT_EQ(costs.bytes[static_cast<size_t>(b.node->id)], 300 * 300 * 4);
  const NodeCosts estimated = estimated_costs(g);
  EXPECT_DOUBLE_EQ(estimated.seconds[static_cast<size_t>(b.node->id)], 2e-9 * 300 * 300 * 300);
}

// ---- Micro-batches ----

TEST(MicroBatches, HaveAllRowsOfABatchInOrder) {
  for (const int64_t rows : {8, 6, 3, 2}) {
    Graph g;
    Tensor x(f32, {rows});
    for (int64_t i = 0; i < rows; ++i) x.data<float>()[i] = static_cast<float>(i);
    for (const bool is_known : {true, false}) {
      const Output fed = is_known ? constant(g, x) : placeholder(g, "x", f32, {any});
      const MicroBatches parts = divide(Batch({fed}), 4);
      ASSERT_EQ(parts.parts.size(), 4U);
      std::vector<Output> all, means;
      for (const Batch& part : parts.parts) {
        all.push_back(part[0]);
        means.push_back(mean(part[0]));
      }
      Session session(g);
      const Feeds feeds = is_known ? Feeds{} : Feeds{{fed, x}};
      const auto out = session.run(feeds, {concatenate(all, 0), parts.mean_of(means)});
      EXPECT_EQ(out[0].shape(), x.shape());
      for (int64_t i = 0; i < rows; ++i) EXPECT_EQ(out[0].data<float>()[i], x.data<float>()[i]);
      EXPECT_NEAR(out[1].item<float>(), static_cast<float>(rows - 1) / 2, 1e-6);
    }
  }
}

TEST(MicroBatches, NeedRows) {
  Graph g;
  expect_error_with(Code::invalid_argument,
                    "is a number, which cannot be divided into 2 micro-batches: make batches of it "
                    "with dataset.batch(n)",
                    [&] { divide(Batch({constant(g, 1.0F)}), 2); });
}

// ---- Training ----

Dataset examples(int64_t batch) {
  constexpr int64_t n = 48;
  Tensor x(f32, {n, 6}), label(i32, {n});
  for (int64_t i = 0; i < n; ++i) {
    for (int64_t j = 0; j < 6; ++j)
      x.data<float>()[i * 6 + j] = std::sin(static_cast<float>(7 * i + 3 * j));
    label.data<int32_t>()[i] = static_cast<int32_t>(i * i % 4);
  }
  return datasets::from_tensor_slices({x, label}).named({"x", "label"}).repeat().batch(batch);
}

Output weights(Graph& g, std::string_view name, const Shape& shape, int64_t seed) {
  return variable(g, name, shape, initializers::random_normal({.stddev = 0.5, .seed = seed}));
}

Losses losses_of(const Output& logits, const Batch& batch) {
  return {.loss = mean(nn::softmax_cross_entropy(logits, batch["label"])),
          .metrics = {{"accuracy", nn::accuracy(logits, batch["label"])}}};
}

// Four layers.
Losses perceptron(const Batch& batch) {
  Graph& g = batch[0].graph();
  Output h = batch["x"];
  for (int layer = 0; layer < 3; ++layer) {
    const NameScope scope(g, concat("layer_", layer));
    h = tanh(matmul(h, weights(g, "w", {6, 6}, layer + 1)) + variable(g, "b", {6}));
  }
  return losses_of(matmul(h, weights(g, "logits", {6, 4}, 9)), batch);
}

// The variables of the model after some steps.
std::map<std::string, std::vector<float>> train(const Strategy& strategy,
                                                const ModelFunction& model,
                                                const Optimizer& optimizer, int64_t batch,
                                                int64_t steps, Training* made = nullptr) {
  Graph g;
  const Training training = strategy.minimize(g, optimizer, examples(batch), model);
  TrainingSession session(training, {.hooks = {stop_at(steps)}});
  while (!session.should_stop()) session.step({});
  session.run();
  std::map<std::string, std::vector<float>> out;
  for (const Output& each : g.collection("variables")) {
    if (each.dtype() != f32 || !copy_root_of(g, variable_name(each)).empty()) continue;
    const Tensor value = session.session().run(read_variable(each));
    out[variable_name(each)].assign(value.span<float>().begin(), value.span<float>().end());
  }
  session.close();
  if (made != nullptr) {
    *made = training;
    made->graph = nullptr;
  }
  return out;
}

void expect_near(const std::map<std::string, std::vector<float>>& got,
                 const std::map<std::string, std::vector<float>>& expected,
                 float tolerance = 2e-5F) {
  ASSERT_EQ(got.size(), expected.size());
  for (const auto& [name, values] : expected) {
    ASSERT_TRUE(got.contains(name)) << name;
    for (size_t i = 0; i < values.size(); ++i)
      EXPECT_NEAR(got.at(name)[i], values[i], tolerance) << name << " at " << i;
  }
}

TEST(PipelineParallel, TrainsAsOneDeviceDoes) {
  InProcessCluster cluster({{"worker", 3}});
  const StrategyCluster member(cluster.spec(), {"worker", 0}, cluster.target("worker", 0));
  const auto alone = train(OneDevice(), perceptron, Sgd{0.5}, 12, 6);
  const auto alone_adam = train(OneDevice(), perceptron, Adam{0.05}, 12, 6);
  for (const auto schedule : {gpipe, one_f_one_b}) {
    for (const int micro_batches : {1, 4, 5}) {  // 5 does not divide 12
      const PipelineParallel pipeline(member,
                                      {.micro_batches = micro_batches, .schedule = schedule});
      EXPECT_EQ(pipeline.stages(), 3);
      expect_near(train(pipeline, perceptron, Sgd{0.5}, 12, 6), alone);
      expect_near(train(pipeline, perceptron, Adam{0.05}, 12, 6), alone_adam, 2e-4F);
    }
  }
}

TEST(PipelineParallel, OfOneStageAddsUpMicroBatches) {
  expect_near(train(PipelineParallel({}, {.micro_batches = 3}), perceptron, Sgd{0.5}, 12, 6),
              train(OneDevice(), perceptron, Sgd{0.5}, 12, 6));
}

// Two pipelines of two stages, each with half of the rows of the batch of one device.
TEST(PipelineParallel, SharesItsDataWithOthers) {
  InProcessCluster cluster({{"worker", 4}});
  const StrategyCluster member(cluster.spec(), {"worker", 0}, cluster.target("worker", 0));
  const PipelineParallel pipeline(member, {.stages = 2, .micro_batches = 2, .data = 2});
  Training made;
  const auto got = train(pipeline, perceptron, Sgd{0.5}, 6, 6, &made);
  EXPECT_EQ(made.replicas, 2);
  expect_near(got, train(OneDevice(), perceptron, Sgd{0.5}, 12, 6));
}

TEST(PipelineParallel, PutsEachStageOnItsWorkerAndItsVariablesToo) {
  InProcessCluster cluster({{"worker", 2}});
  const StrategyCluster member(cluster.spec(), {"worker", 0}, cluster.target("worker", 0));
  const PipelineParallel pipeline(member, {.micro_batches = 2, .cuts = {"layer_2"}});
  Graph g;
  const Training training = pipeline.minimize(g, Adam{0.1}, examples(8), perceptron);
  const auto task_of = [&](const std::string& name) {
    return *variable_named(g, name).node->requested_device->task;
  };
  EXPECT_EQ(task_of("layer_0/w"), 0);
  EXPECT_EQ(task_of("layer_1/b"), 0);
  EXPECT_EQ(task_of("layer_2/w"), 1);
  EXPECT_EQ(task_of("logits"), 1);
  EXPECT_THAT(training.explanation, HasSubstr("pipeline: 2 stages, 2 micro-batches, 1f1b"));
  EXPECT_THAT(training.explanation, HasSubstr("layer_2/MatMul"));
}

// Seen from outside: when the nodes of a traced step ran.
TEST(PipelineParallel, KeepsTheOrderOfItsSchedule) {
  InProcessCluster cluster({{"worker", 2}});
  const StrategyCluster member(cluster.spec(), {"worker", 0}, cluster.target("worker", 0));
  for (const auto schedule : {gpipe, one_f_one_b}) {
    const PipelineParallel pipeline(
        member, {.micro_batches = 4, .schedule = schedule, .cuts = {"layer_1"}});
    Graph g;
    const Training training = pipeline.minimize(g, Sgd{0.1}, examples(8), perceptron);
    Session session(g, {.target = cluster.target("worker", 0)});
    session.initialize();
    RunMetadata metadata;
    session.run({}, std::vector<Output>{}, {*training.step.node}, {.trace = true}, &metadata);
    const auto blocks = pipeline_blocks(schedule, 2, 4);
    for (int stage = 0; stage < 2; ++stage) {
      int64_t free = 0;
      for (const PipelineBlock& block : blocks) {
        if (block.stage != stage) continue;
        int64_t begin = std::numeric_limits<int64_t>::max(), end = 0;
        for (const TraceEvent& event : metadata.events) {
          const bool is_backward = event.node.find("/gradients/") != std::string::npos;
          if (!event.node.starts_with(concat("micro_batches/", block.micro_batch, "/")) ||
              event.op == "NoOp" || is_backward != block.is_backward ||
              event.device.find(concat("task:", stage)) == std::string::npos)
            continue;
          begin = std::min(begin, event.start_ns);
          end = std::max(end, event.end_ns);
        }
        ASSERT_GT(end, 0) << stage << " " << block.micro_batch << " " << block.is_backward;
        EXPECT_LE(free, begin) << stage << " " << block.micro_batch << " " << block.is_backward;
        free = end;
      }
    }
    session.close();
  }
}

// Moving averages, dropout without effect, a table that two stages use, a loop and a condition.
Losses mixed(const Batch& batch) {
  Graph& g = batch[0].graph();
  Output table = weights(g, "table", {4, 6}, 3);
  Output h = batch["x"] + nn::dropout(take(table, batch["label"]), 0.0, {.training = true});
  auto [k, power] = while_loop([](Output k, Output) { return k < 3; },
                               [&](Output k, Output p) {
                                 return std::tuple{k + 1, tanh(p * h) + 0.5F};
                               },
                               0, h);
  h = matmul(power, weights(g, "w", {6, 6}, 4));
  h = cond(
      mean(h) > 100.0F, [&] { return h * 2.0F; }, [&] { return h * h; });
  h = tanh(matmul(h, weights(g, "w2", {6, 6}, 5)));
  return losses_of(matmul(h, transpose(table)), batch);
}

TEST(PipelineParallel, LeavesLoopsAndConditionsWhole) {
  InProcessCluster cluster({{"worker", 3}});
  const StrategyCluster member(cluster.spec(), {"worker", 0}, cluster.target("worker", 0));
  const auto alone = train(OneDevice(), mixed, Sgd{0.2}, 12, 5);
  for (const auto schedule : {gpipe, one_f_one_b}) {
    expect_near(train(PipelineParallel(member, {.micro_batches = 3, .schedule = schedule}), mixed,
                      Sgd{0.2}, 12, 5),
                alone);
    expect_near(train(PipelineParallel(member, {.micro_batches = 3,
                                                .schedule = schedule,
                                                .cost = PipelineParallelOptions::Cost::estimated}),
                      mixed, Sgd{0.2}, 12, 5),
                alone);
  }
}

// The average follows each micro-batch, as if these were batches.
TEST(PipelineParallel, MovingAveragesFollowEachMicroBatch) {
  const auto model = [](const Batch& batch) {
    Graph& g = batch[0].graph();
    Output h = nn::batch_norm(batch["x"], {.training = true, .momentum = 0.5});
    return losses_of(matmul(tanh(h), weights(g, "w", {6, 4}, 1)), batch);
  };
  InProcessCluster cluster({{"worker", 2}});
  const StrategyCluster member(cluster.spec(), {"worker", 0}, cluster.target("worker", 0));
  const auto pipelined =
      train(PipelineParallel(member, {.micro_batches = 2}), model, Sgd{0.0}, 12, 2);
  const auto alone = train(OneDevice(), model, Sgd{0.0}, 6, 4);
  expect_near(pipelined, alone);
  EXPECT_NE(alone.at("batch_norm/moving_mean")[0], 0);
}

TEST(PipelineParallel, RandomNumbersDifferBetweenMicroBatches) {
  const auto model = [](const Batch& batch) {
    Graph& g = batch[0].graph();
    Output w = variable(g, "w", {}, initializers::zeros());
    Output number = random::uniform(g, {}, {.seed = 3});
    return Losses{.loss = w * number + mean(batch["x"]) * 0.0F};
  };
  const auto got = train(PipelineParallel({}, {.micro_batches = 2}), model, Sgd{1.0}, 2, 1);
  const auto alone = train(OneDevice(), model, Sgd{1.0}, 2, 1);
  EXPECT_NE(got.at("w")[0], alone.at("w")[0]);
  EXPECT_LT(got.at("w")[0], 0);
}

TEST(PipelineParallel, EvaluatesWhatItHasTrained) {
  InProcessCluster cluster({{"worker", 2}});
  const StrategyCluster member(cluster.spec(), {"worker", 0}, cluster.target("worker", 0));
  const PipelineParallel pipeline(member, {.micro_batches = 2});
  Graph g;
  const Training training = pipeline.minimize(g, Sgd{0.0}, examples(8), perceptron);
  const Losses whole = pipeline.evaluate(g, examples(8).next(g), perceptron);
  Session session(g, {.target = cluster.target("worker", 0)});
  session.initialize();
  const auto out = session.run(
      {}, {training.loss, whole.loss, training.metrics[0].second, whole.metrics[0].second});
  EXPECT_NEAR(out[0].item<float>(), out[1].item<float>(), 1e-5);
  EXPECT_NEAR(out[2].item<float>(), out[3].item<float>(), 1e-6);
  session.close();
}

// ---- Mistakes ----

TEST(PipelineParallel, SaysWhichOptionDoesNotFit) {
  ClusterSpec spec = ClusterSpec::parse(R"({"cluster": {"worker": ["a:1", "b:1", "c:1"]}})");
  const auto fails = [&](PipelineParallelOptions options, const std::string& message) {
    expect_error_with(Code::invalid_argument, message,
                      [&] { PipelineParallel(StrategyCluster(spec), options); });
  };
  fails({.stages = 2}, "stages=2 and data=1 need 2 workers, and the cluster has 3");
  fails({.data = 2}, "data=2 does not divide the 3 workers of the cluster");
  fails({.micro_batches = 0}, "micro_batches must be positive, got 0");
  fails({.cuts = {"a"}}, "3 stages begin at 2 cuts, but 1 are named");
  Graph described;
  EXPECT_TRUE(PipelineParallel(StrategyCluster(spec))
                  .minimize(described, Sgd{0.1}, examples(8), perceptron)
                  .loss);
  Graph g;
  const PipelineParallel unknown(StrategyCluster(spec), {.cuts = {"layer_1", "layer_7"}});
  expect_error_with(Code::invalid_argument, "stage 2 cannot begin at 'layer_7'",
                    [&] { unknown.minimize(g, Sgd{0.1}, examples(8), perceptron); });
  Graph h;
  const PipelineParallel swapped(StrategyCluster(spec), {.cuts = {"layer_2", "layer_1"}});
  expect_error_with(Code::invalid_argument, "name the cuts in the order of the model",
                    [&] { swapped.minimize(h, Sgd{0.1}, examples(8), perceptron); });
}

}  // namespace
}  // namespace leat
