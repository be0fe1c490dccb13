#include "frontends/cpp/optimizers/moving_average.h"

#include <gtest/gtest.h>

#include "frontends/cpp/optimizers/optimizers.h"
#include "frontends/cpp/session.h"
#include "frontends/cpp/training/saver.h"
#include "tests/support/scratch_directory.h"

namespace leat {
namespace {

TEST(ExponentialMovingAverage, FollowsItsVariableFromItsFirstValue) {
  Graph graph;
  const Output w = variable(graph, "layer/w", {}, initializers::constant(4.0), f64);
  const Output step =
      variable(graph, "global_step", {}, initializers::zeros(), i64, {.trainable = false});
  Node& train = Sgd(1).minimize(w, {.global_step = step});
  ExponentialMovingAverage averages(0.75);
  Node& follow = averages.apply(graph, {}, &train);
  Node& evaluate = averages.assign_averages();
  Node& init = initialize_variables(graph);
  EXPECT_NE(graph.find("layer/w/ExponentialMovingAverage"), nullptr);
  EXPECT_EQ(graph.collection("trainable_variables").size(), 1U);

  Session session(graph);
  session.run({init});
  double value = 4, average = 4;
  for (int i = 0; i < 5; ++i) {
    session.run({follow});
    value -= 1;
    average -= 0.25 * (average - value);
    EXPECT_EQ(session.run({}, {w})[0].item<double>(), value);
    EXPECT_NEAR(session.run({}, {averages.average(w)})[0].item<double>(), average, 1e-12);
  }
  session.run({evaluate});
  EXPECT_NEAR(session.run({}, {w})[0].item<double>(), average, 1e-12);
}

TEST(ExponentialMovingAverage, FollowsFasterAtFirstWithACount) {
  Graph graph;
  const Output w = variable(graph, "w", {}, initializers::zeros());
  const Output count = placeholder(graph, "count", i64, {});
  ExponentialMovingAverage averages(0.9, count);
  Node& follow = averages.apply(graph);
  Node& init = initialize_variables(graph);
  Node& set = *assign(w, constant(graph, Tensor::scalar(1.0F))).node;
  Session session(graph);
  double average = 0;
  session.run({init});
  session.run({set});
  for (const int64_t n : {0, 5, 1000}) {
    session.run({{count, Tensor::scalar(n)}}, {follow});
    const double at = static_cast<double>(n);
    average += (1 - std::min(0.9, (1 + at) / (10 + at))) * (1 - average);
    EXPECT_NEAR(session.run({}, {averages.average(w)})[0].item<float>(), average, 1e-6);
  }
}

TEST(ExponentialMovingAverage, RestoresVariablesAsTheirAverages) {
  Graph graph;
  const Output w = variable(graph, "w", {}, initializers::constant(4.0)),
               n = variable(graph, "n", {}, initializers::zeros(), i64, {.trainable = false});
  ExponentialMovingAverage averages(0.5);
  Node& follow = averages.apply(graph);
  Node& change = *assign(w, constant(graph, Tensor::scalar(8.0F))).node;
  Node& count = *assign_add(n, constant(graph, Tensor::scalar(int64_t{1}))).node;
  Node& init = initialize_variables(graph);
  Saver saver(graph), evaluation(graph, {.variables = averages.variables_to_restore(graph)});
  const ScratchDirectory directory;
  Session session(graph);
  session.run({init});
  session.run({change, count});
  session.run({follow});
  const std::string prefix = saver.save(session, directory.path(), 1);
  session.run({init});
  evaluation.restore(session, prefix);
  const auto [value, steps] = session.run({}, fetch(w, n));
  EXPECT_EQ(value.item<float>(), 6);
  EXPECT_EQ(steps.item<int64_t>(), 1);
  saver.restore(session, prefix);
  EXPECT_EQ(session.run({}, {w})[0].item<float>(), 8);
}

TEST(ExponentialMovingAverage, ReportsMistakes) {
  Graph graph;
  EXPECT_THROW(ExponentialMovingAverage(1.0), Error);
  ExponentialMovingAverage averages(0.5);
  EXPECT_THROW(averages.apply(graph), Error) << "no variables";
  const Output w = variable(graph, "w", {}),
               n = variable(graph, "n", {}, initializers::zeros(), i64);
  EXPECT_THROW(averages.apply(graph, {n}), Error) << "an integer";
  averages.apply(graph, {w});
  try {
    averages.average(n);
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), Code::not_found);
    EXPECT_EQ(error.message(), "apply() made no moving average of 'n:0'");
  }
}

}  // namespace
}  // namespace leat
