// L-BFGS against its two-loop recursion, written with vectors that are all in one place.
#include "frontends/cpp/strategies/lbfgs.h"

#include <gtest/gtest.h>

#include <deque>
#include <limits>

#include "frontends/cpp/state/queue.h"
#include "tests/support/eventually.h"
#include "tests/support/expect_error.h"
#include "tests/support/strategy_programs.h"

namespace leat {
namespace {

using namespace strategy_programs;

constexpr int64_t samples = 8;
constexpr double first[] = {-1.2, 1};

Dataset few_numbers() {
  Tensor values(f32, {samples});
  for (int64_t i = 0; i < samples; ++i) values.data<float>()[i] = x(i);
  return datasets::from_tensor_slices(values).repeat().batch(1);
}

// Rosenbrock's valley, a little elsewhere for each sample.
Losses valley(const Batch& batch) {
  Graph& g = batch[0].graph();
  Output a = variable(g, "a", {}, initializers::constant(first[0]), f64),
         b = variable(g, "b", {1, 1}, initializers::constant(first[1]), f64);
  const Output shift = cast(mean(batch[0]), f64) * 0.1;
  return {.loss = square(1 + shift - a) + 100 * sum(square(b - square(a)))};
}

// The rule.
struct Rule {
  using Vector = std::array<double, 2>;
  static double dot(const Vector& u, const Vector& v) { return u[0] * v[0] + u[1] * v[1]; }
  static Vector sum(const Vector& u, double factor, const Vector& v) {
    return {u[0] + factor * v[0], u[1] + factor * v[1]};
  }

  void evaluate() {
    double f = 0;
    Vector g = {0, 0};
    for (int64_t i = 0; i < samples; ++i) {
      const double p = 1 + 0.1 * x(i) - w[0], q = w[1] - w[0] * w[0];
      f += (p * p + 100 * q * q) / samples;
      g = sum(g, 1.0 / samples, {-2 * p - 400 * q * w[0], 200 * q});
    }
    if (f > f0 + 1e-4 * t * slope + std::fabs(f0) * std::numeric_limits<double>::epsilon()) {
      t /= 2;
      ++rejected;
    } else {
      const Vector s = sum(w, -1, w0), y = sum(g, -1, g0);
      if (dot(s, y) > 1e-10 * dot(y, y)) pairs.emplace_back(s, y);
      if (pairs.size() > memory) pairs.pop_front();
      d = g;
      std::vector<double> alpha(pairs.size());
      for (size_t i = pairs.size(); i-- > 0;) {
        alpha[i] = dot(pairs[i].first, d) / dot(pairs[i].first, pairs[i].second);
        d = sum(d, -alpha[i], pairs[i].second);
      }
      if (!pairs.empty()) {
        const auto& [last_s, last_y] = pairs.back();
        const double gamma = dot(last_s, last_y) / dot(last_y, last_y);
        d = {gamma * d[0], gamma * d[1]};
      }
      for (size_t i = 0; i < pairs.size(); ++i) {
        const auto& [its_s, its_y] = pairs[i];
        d = sum(d, alpha[i] - dot(its_y, d) / dot(its_y, its_s), its_s);
      }
      d = {-d[0], -d[1]};
      t = pairs.empty() ? 1 / std::max(1.0, std::sqrt(dot(g, g))) : 1;
      w0 = w, f0 = f, g0 = g, slope = dot(g, d);
    }
    w = sum(w0, t, d);
  }

  size_t memory = 3;
  Vector w = {first[0], first[1]}, w0 = w, g0 = {0, 0}, d = {0, 0};
  double f0 = std::numeric_limits<double>::infinity(), slope = 0, t = 1;
  std::deque<std::pair<Vector, Vector>> pairs;
  int rejected = 0;
};

// a and b after so many evaluations; `ends`: what the training leaves.
std::vector<double> trained(const std::string& strategy, const StrategyCluster& cluster,
                            int64_t evaluations, bool ends = false) {
  Graph graph;
  const auto made = make_strategy(strategy, cluster);
  const Training training = made->minimize(graph, Sgd{1}, few_numbers(), valley);
  TrainingSession session(training, {.hooks = {stop_at(evaluations)}});
  while (!session.should_stop()) session.step({});
  if (ends) session.run();
  std::vector<double> out;
  for (const char* name : {"a", "b"})
    out.push_back(session.session().run(variable_named(graph, name)).item<double>());
  return out;
}

TEST(Lbfgs, FollowsItsRule) {
  InProcessCluster cluster({{"ps", 2}, {"worker", 2}});
  Rule rule;
  for (const int64_t evaluations : {1, 5, 20}) {
    Rule one;
    for (int64_t i = 0; i < evaluations; ++i) one.evaluate();
    rule = one;
    const auto w = trained("lbfgs:batches=4:memory=3", member(cluster, 0), evaluations);
    EXPECT_NEAR(w[0], rule.w[0], 1e-6) << evaluations;
    EXPECT_NEAR(w[1], rule.w[1], 1e-6) << evaluations;
  }
  EXPECT_GT(rule.rejected, 0);                // a line was searched
  EXPECT_EQ(rule.pairs.size(), rule.memory);  // and pairs were forgotten
}

// a is 1 + the mean shift, b its square.
TEST(Lbfgs, FindsTheMinimum) {
  double a = 1;
  for (int64_t i = 0; i < samples; ++i) a += 0.1 * x(i) / samples;
  InProcessCluster cluster({{"worker", 2}});
  const auto w = trained("lbfgs:batches=4", member(cluster, 0), 60, /*ends=*/true);
  EXPECT_NEAR(w[0], a, 1e-5);
  EXPECT_NEAR(w[1], a * a, 1e-5);
}

TEST(Lbfgs, ServersDoNotChangeTheResult) {
  InProcessCluster cluster({{"ps", 2}, {"worker", 1}});
  EXPECT_EQ(trained("lbfgs:batches=8", member(cluster, 0), 20), trained("lbfgs:batches=8", {}, 20));
}

TEST(Lbfgs, PortionsFollowTheSameRule) {
  for (const char* strategy :
       {"lbfgs:batches=1:portions=8:memory=3", "lbfgs:batches=2:portions=4:memory=3:backups=2"}) {
    InProcessCluster cluster({{"ps", 2}, {"worker", 3}});
    for (const int64_t evaluations : {1, 5, 20}) {
      Rule rule;
      for (int64_t i = 0; i < evaluations; ++i) rule.evaluate();
      const auto w = trained(strategy, member(cluster, 0), evaluations);
      EXPECT_NEAR(w[0], rule.w[0], 1e-6) << strategy << " " << evaluations;
      EXPECT_NEAR(w[1], rule.w[1], 1e-6) << strategy << " " << evaluations;
    }
  }
}

// Worker 1 takes a portion and does not answer until the others have finished some evaluations
// without it; then its answer, of old variables, comes.
TEST(Lbfgs, APortionCountsOnceWhoeverAnswersFirst) {
  InProcessCluster cluster({{"ps", 1}, {"worker", 2}});
  Graph graph;
  int replicas = 0;
  Node *open = nullptr, *open_much = nullptr;
  Output waiting;
  const auto gated = [&](const Batch& batch) {
    const Output held = variable(graph, "held", {}, i64, {.trainable = false});
    if (++replicas != 2) return valley(batch);
    const Queue gate(graph, "gate", {i32}, {.shapes = {{}}});
    open = &gate.enqueue({constant(graph, 0)});
    open_much = &gate.enqueue_many({full(graph, {1000}, constant(graph, 0))});
    const Output arrived = [&] {
      const ControlScope after(graph, {batch[0]});
      return assign_add(held, 1);
    }();
    waiting = read_variable(held);
    const ControlScope after(graph, {arrived});
    const ControlScope opened(graph, {gate.dequeue()[0]});
    return valley(Batch({identity(batch[0])}));
  };
  const auto made =
      make_strategy("lbfgs:batches=1:portions=8:backups=8:memory=3", member(cluster, 0));
  const Training training = made->minimize(graph, Sgd{1}, few_numbers(), gated);
  TrainingSession session(training);
  Rule rule;
  const auto make_step = [&] {
    session.step({});
    rule.evaluate();
    EXPECT_NEAR(session.session().run(variable_named(graph, "a")).item<double>(), rule.w[0], 1e-6);
    EXPECT_NEAR(session.session().run(variable_named(graph, "b")).item<double>(), rule.w[1], 1e-6);
  };
  const auto batches_of_worker_1 = [&] { return session.session().run(waiting).item<int64_t>(); };
  // Until it holds a portion, and then some more.
  ASSERT_TRUE(eventually([&] {
    make_step();
    return batches_of_worker_1() == 1;
  }));
  for (int i = 0; i < 3; ++i) make_step();
  EXPECT_EQ(batches_of_worker_1(), 1) << "it waits since";
  session.session().run({*open});
  ASSERT_TRUE(eventually([&] {
    make_step();
    return batches_of_worker_1() == 2;
  })) << "its late answer has been dropped, and it has taken another portion";
  session.session().run({*open_much});
  for (int i = 0; i < 5; ++i) make_step();
}

TEST(Lbfgs, ReportsMistakes) {
  expect_error_with(Code::invalid_argument, "must not be fewer than the 1 workers, got -1",
                    [] { make_strategy("lbfgs:batches=1:portions=-1", {}); });
  expect_error_with(Code::invalid_argument,
                    "backups must be from 0 to the number of portions, 0, got 1",
                    [] { make_strategy("lbfgs:batches=1:backups=1", {}); });
  expect_error_with(Code::invalid_argument, "the option 'batches' is needed",
                    [] { make_strategy("lbfgs", {}); });
  expect_error_with(Code::invalid_argument, "memory must be positive, got 0",
                    [] { make_strategy("lbfgs:batches=1:memory=0", {}); });
}

}  // namespace
}  // namespace leat
