#include "frontends/cpp/examples/custom_op/swish.h"

#include <gtest/gtest.h>

#include <leat/leat.h>
#include <cmath>

using namespace leat;

namespace {

TEST(Swish, IsItsFormula) {
  Graph g;
  const Output y = swish(constant(g, {-1.0F, 0.0F, 2.0F}), 1.5F);
  const Tensor got = Session(g).run({}, {y})[0];
  for (int i = 0; i < 3; ++i) {
    const double x = i == 0 ? -1 : i == 1 ? 0 : 2;
    EXPECT_NEAR(got.data<float>()[i], x / (1 + std::exp(-1.5 * x)), 1e-6);
  }
}

TEST(Swish, GradientIsTheDifferenceQuotient) {
  Graph g;
  const Output x = placeholder(g, "x", f32, {3}), y = sum(swish(x, 0.7F));
  const Output dx = gradients({y}, {x})[0];
  Session session(g);
  std::vector<float> at = {-1.2F, 0.1F, 0.9F};
  const auto run = [&](Output what) {
    return session.run({{x, Tensor::of<float>({3}, std::span<const float>(at))}}, {what})[0];
  };
  const Tensor got = run(dx);
  for (size_t i = 0; i < 3; ++i) {
    constexpr float h = 1e-2F;
    at[i] += h;
    const float above = run(y).item<float>();
    at[i] -= 2 * h;
    const float below = run(y).item<float>();
    at[i] += h;
    EXPECT_NEAR(got.data<float>()[i], (above - below) / (2 * h), 1e-3);
  }
}

TEST(Swish, NeedsFloats) {
  Graph g;
  EXPECT_THROW(swish(constant(g, {1, 2})), Error);
}

}  // namespace
