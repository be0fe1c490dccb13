// Clipped gradients, against the same computation in plain C++.
#include "frontends/cpp/optimizers/gradient_clipping.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "frontends/cpp/optimizers/gradient_descent.h"
#include "frontends/cpp/session.h"

namespace leat {
namespace {

using testing::ElementsAre;
using testing::FloatNear;

// Gradients (3, -4) and 12, of global norm 13, and a variable without one.
struct Gradients {
  Graph graph;
  std::vector<GradientAndVariable> all;

  explicit Gradients(float last = 12) {
    const Output a = variable(graph, "a", {2}),
                 b = variable(graph, "b", {}, initializers::zeros(), f64),
                 c = variable(graph, "c", {});
    all = {{constant(graph, Tensor::of<float>({2}, {3, -4})), a},
           {constant(graph, Tensor::scalar(static_cast<double>(last))), b},
           {{}, c}};
  }
};

// {3, -4} and 12, after clipping.
std::vector<double> values(const std::vector<GradientAndVariable>& gradients) {
  EXPECT_FALSE(gradients[2].gradient);
  EXPECT_EQ(gradients[1].gradient.dtype(), f64);
  Session session(gradients[0].gradient.graph());
  const std::vector<Tensor> out = session.run({}, {gradients[0].gradient, gradients[1].gradient});
  return {out[0].data<float>()[0], out[0].data<float>()[1], out[1].item<double>()};
}

auto near(double x) { return testing::DoubleNear(x, 1e-5); }

TEST(GradientClipping, ComputesTheGlobalNorm) {
  Gradients g;
  const Output norm = global_norm(g.all);
  EXPECT_NEAR(Session(g.graph).run({}, {norm})[0].item<float>(), 13, 1e-5);
}

TEST(GradientClipping, ByGlobalNormScalesAllEqually) {
  Gradients large, small;
  EXPECT_THAT(values(clip_by_global_norm(large.all, 6.5)),
              ElementsAre(near(1.5), near(-2), near(6)));
  EXPECT_THAT(values(clip_by_global_norm(small.all, 20)), ElementsAre(near(3), near(-4), near(12)));
}

TEST(GradientClipping, ByGlobalNormTurnsInfiniteNormsIntoNaN) {
  Gradients g(std::numeric_limits<float>::infinity());
  for (const double value : values(clip_by_global_norm(g.all, 5))) EXPECT_TRUE(std::isnan(value));
}

TEST(GradientClipping, ByNormScalesEachSeparately) {
  Gradients g, zero(0);
  EXPECT_THAT(values(clip_by_norm(g.all, 2.5)), ElementsAre(near(1.5), near(-2), near(2.5)));
  EXPECT_THAT(values(clip_by_norm(zero.all, 10)), ElementsAre(near(3), near(-4), near(0)));
}

TEST(GradientClipping, ByValueClipsElements) {
  Gradients g;
  EXPECT_THAT(values(clip_by_value(g.all, -1, 5)), ElementsAre(near(3), near(-1), near(5)));
}

TEST(GradientClipping, WorksAsAnOptimizersTransform) {
  Graph graph;
  const Output w = variable(graph, "w", {2});
  Sgd optimizer(1);
  optimizer.set_gradient_transform(
      [](auto gradients) { return clip_by_global_norm(std::move(gradients), 5); });
  Node& train = optimizer.minimize(sum(w * constant(graph, Tensor::of<float>({2}, {30, -40}))));
  Node& init = initialize_variables(graph);
  Session session(graph);
  session.run({init});
  session.run({train});
  const Tensor value = session.run({}, {w})[0];
  EXPECT_NEAR(value.data<float>()[0], -3, 1e-5);
  EXPECT_NEAR(value.data<float>()[1], 4, 1e-5);
}

TEST(GradientClipping, ReportsMistakes) {
  Gradients g;
  EXPECT_THROW(clip_by_norm(g.all, 0), Error);
  EXPECT_THROW(clip_by_value(g.all, 2, 1), Error);
  try {
    global_norm({g.all[2]});
    FAIL();
  } catch (const Error& error) {
    EXPECT_THAT(error.message(), testing::HasSubstr("none of the 1 variables has a gradient"));
  }
}

}  // namespace
}  // namespace leat
