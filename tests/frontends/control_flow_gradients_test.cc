// Gradients of cond(), while_loop(), map_fn() and scan(), of first and second order, against
// differences of what the graph itself computes.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "frontends/cpp/control_flow/cond.h"
#include "frontends/cpp/control_flow/map_fn.h"
#include "frontends/cpp/control_flow/while_loop.h"
#include "frontends/cpp/session.h"
#include "frontends/cpp/variables.h"
#include "graph/gradient.h"
#include "graph/loops/tensor_list.h"
#include "tests/support/expect_error.h"

namespace leat {
namespace {

using Outputs = std::vector<Output>;
using Function = std::function<Output(const Outputs& x)>;  // a scalar

Tensor moved(const Tensor& x, int64_t i, double by) {
  Tensor out = x.clone();
  out.data<double>()[i] += by;
  return out;
}

Output inner(Output a, Output b) { return sum(a * b); }

// d y/d x[k] of each element, by differences.
void expect_differences(Session& session, const Feeds& feeds, Output y, size_t k, Output gradient) {
  constexpr double h = 1e-5;
  const Tensor got = session.run(feeds, {gradient})[0];
  ASSERT_EQ(got.shape(), feeds[k].value.shape());
  for (int64_t i = 0; i < got.elements(); ++i) {
    double values[2];
    for (const int side : {0, 1}) {
      Feeds there = feeds;
      there[k].value = moved(feeds[k].value, i, side == 0 ? -h : h);
      values[side] = session.run(there, {y})[0].item<double>();
    }
    const double expected = (values[1] - values[0]) / (2 * h);
    EXPECT_NEAR(got.data<double>()[i], expected, 1e-5 * (1 + std::abs(expected)))
        << y.name() << " by element " << i << " of input " << k;
  }
}

// Both orders: the gradient of f, and of its gradient in one direction.
void expect_gradients(const Function& f, const std::vector<Tensor>& xs) {
  Graph g;
  Outputs inputs;
  Feeds feeds;
  for (const Tensor& x : xs) {
    inputs.push_back(placeholder(g, "x", f64, x.shape()));
    feeds.push_back({inputs.back(), x});
  }
  const Output y = f(inputs);
  const Outputs dx = gradients({y}, inputs);
  std::optional<Output> slope;
  for (size_t k = 0; k < xs.size(); ++k) {
    ASSERT_TRUE(dx[k]) << "no gradient of input " << k;
    Tensor direction(f64, xs[k].shape());
    for (int64_t i = 0; i < direction.elements(); ++i)
      direction.data<double>()[i] = 0.5 + 0.25 * static_cast<double>(i);
    const Output part = inner(dx[k], constant(g, direction));
    slope = slope ? *slope + part : part;
  }
  const Outputs ddx = gradients({*slope}, inputs);
  Session session(g);
  for (size_t k = 0; k < xs.size(); ++k) {
    expect_differences(session, feeds, y, k, dx[k]);
    if (ddx[k]) expect_differences(session, feeds, *slope, k, ddx[k]);
  }
}

Tensor vector(std::initializer_list<double> values) {
  return Tensor::of<double>({static_cast<int64_t>(values.size())}, values);
}
Tensor scalar(double value) { return Tensor::scalar(value); }
const Tensor matrix = Tensor::of<double>({2, 2}, {0.5, -0.3, 0.2, 0.7});

// ---- Loops ----

TEST(LoopGradient, OfAPower) {
  Graph g;
  const Output x = placeholder(g, "x", f32, {}), n = placeholder(g, "n", i32, {});
  const auto [i, power] = while_loop([&](Output i, Output) { return i < n; },
                                     [&](Output i, Output power) {
                                       return std::tuple{i + 1, power * x};
                                     },
                                     constant(g, 0), constant(g, 1.0f));
  const Output dx = gradients({power}, {x})[0];
  const Output ddx = gradients({dx}, {x})[0];
  const Output dddx = gradients({ddx}, {x})[0];
  Session session(g);
  for (const int times : {0, 1, 2, 5}) {
    const auto values = session.run({{x, Tensor::scalar(2.0f)}, {n, Tensor::scalar(times)}},
                                    {power, dx, ddx, dddx});
    const double t = times;
    EXPECT_EQ(values[0].item<float>(), std::pow(2, t));
    EXPECT_EQ(values[1].item<float>(), t * std::pow(2, t - 1));
    EXPECT_EQ(values[2].item<float>(), t * (t - 1) * std::pow(2, t - 2));
    EXPECT_EQ(values[3].item<float>(), t * (t - 1) * (t - 2) * std::pow(2, t - 3));
  }
}

// A recurrent network: the weights come from outside, the state is a loop variable.
Output recurrent(Output h, Output w, Output x, int steps) {
  const auto [i, last] =
      while_loop([=](Output i, Output) { return i < steps; },
                 [=](Output i, Output h) {
                   return std::tuple{i + 1, tanh(reshape(matmul(reshape(h, {1, 2}), w), {2}) + x)};
                 },
                 constant(h.graph(), 0), h);
  return sum(square(last));
}

TEST(LoopGradient, OfOuterValues) {
  expect_gradients([](const Outputs& x) { return recurrent(x[0], x[1], x[2], 4); },
                   {vector({0.3, -0.2}), matrix, vector({0.1, 0.4})});
}

// What a body has from outside, and something else from outside that was computed from it: also
// the second derivative of x² + sin x, whose first one has cos x from outside.
TEST(LoopGradient, OfOuterValuesOfWhichOneDependsOnTheOther) {
  const auto loop = [](Output x, const std::function<Output(Output)>& body) {
    auto [k, y] = while_loop([](Output k, Output) { return k < 3; },
                             [&](Output k, Output y) {
                               return std::tuple{k + 1, body(y)};
                             },
                             constant(x.graph(), 0), zeros_like(x));
    return sum(y);
  };
  const Tensor at = Tensor::of<double>({2}, {1.3, -0.4});
  expect_gradients(
      [&](const Outputs& x) {
        return loop(x[0], [&](Output y) { return y * 0.5 + x[0] * x[0] + sin(x[0]); });
      },
      {at});
  expect_gradients(
      [&](const Outputs& x) {
        const Output outside = sin(x[0]);
        return loop(x[0], [&](Output y) { return y * x[0] + outside * x[0]; });
      },
      {at});
}

TEST(LoopGradient, OfNestedLoops) {
  expect_gradients(
      [](const Outputs& x) {
        Graph& g = x[0].graph();
        const auto [i, out] = while_loop([](Output i, Output) { return i < 3; },
                                         [&](Output i, Output y) {
                                           const auto [j, z] = while_loop(
                                               [&](Output j, Output) { return j < i + 1; },
                                               [&](Output j, Output z) {
                                                 return std::tuple{j + 1, sin(z * x[1]) + y};
                                               },
                                               constant(g, 0), y * x[0]);
                                           return std::tuple{i + 1, z * y};
                                         },
                                         constant(g, 0), x[0]);
        return sum(out);
      },
      {vector({0.9, 1.2}), vector({0.7, -0.4})});
}

TEST(LoopGradient, OfSwappedVariables) {
  expect_gradients(
      [](const Outputs& x) {
        const auto [i, a, b] = while_loop([](Output i, Output, Output) { return i < 3; },
                                          [](Output i, Output a, Output b) {
                                            return std::tuple{i + 1, b, a * b};
                                          },
                                          constant(x[0].graph(), 0), x[0], x[1]);
        return sum(a * 2 + b);
      },
      {vector({0.9, 1.2}), vector({0.7, -0.4})});
}

TEST(LoopGradient, OfGrowingShapes) {
  expect_gradients(
      [](const Outputs& x) {
        const auto [i, rows] =
            while_loop([](Output i, Output) { return i < 3; },
                       [](Output i, Output rows) {
                         return std::tuple{i + 1, concatenate({rows, rows * rows + 1}, 0)};
                       },
                       std::tuple{constant(x[0].graph(), 0), x[0]}, {.shapes = {{}, {any}}});
        return sum(rows);
      },
      {vector({0.5, 0.2})});
}

TEST(LoopGradient, OfGrowingLists) {
  expect_gradients(
      [](const Outputs& x) {
        Graph& g = x[0].graph();
        const auto [i, y, list] =
            while_loop([](Output i, Output, Output) { return i < 4; },
                       [&](Output i, Output y, Output list) {
                         return std::tuple{i + 1, y * x[0], tensor_list::push(list, sin(y))};
                       },
                       constant(g, 0), x[0], tensor_list::empty(g, f64, {2}));
        return sum(square(tensor_list::stack(list, f64, {2})));
      },
      {vector({0.5, 1.2})});
}

TEST(LoopGradient, StopsAtMaximumIterations) {
  expect_gradients(
      [](const Outputs& x) {
        const Output y =
            while_loop([](Output y) { return sum(y) < 1e6; }, [&](Output y) { return y * x[0]; },
                       std::tuple{x[0]}, {.maximum_iterations = 3})[0];
        return sum(y);
      },
      {vector({0.9, 1.2})});
}

TEST(LoopGradient, TakenInsideABody) {
  // Newton's method for the square root of x, which takes a derivative in each iteration.
  expect_gradients(
      [](const Outputs& x) {
        const auto [i, root] =
            while_loop([](Output i, Output) { return i < 4; },
                       [&](Output i, Output y) {
                         const Output f = y * y - x[0];
                         return std::tuple{i + 1, y - f / gradients({f}, {y})[0]};
                       },
                       constant(x[0].graph(), 0), ones_like(x[0]));
        return sum(root);
      },
      {vector({2, 9})});
}

TEST(LoopGradient, TwiceThroughOneLoop) {
  Graph g;
  const Output x = placeholder(g, "x", f32, {}), z = placeholder(g, "z", f32, {});
  const auto [i, y] = while_loop([](Output i, Output) { return i < 3; },
                                 [&](Output i, Output y) {
                                   return std::tuple{i + 1, y * x + z};
                                 },
                                 constant(g, 0), x);
  const Output dx = gradients({y}, {x})[0], dz = gradients({y * 2}, {z})[0];
  const auto values =
      Session(g).run({{x, Tensor::scalar(2.0f)}, {z, Tensor::scalar(1.0f)}}, {y, dx, dz});
  EXPECT_EQ(values[0].item<float>(), 23);  // x⁴ + z (x² + x + 1)
  EXPECT_EQ(values[1].item<float>(), 37);  // 4 x³ + z (2 x + 1)
  EXPECT_EQ(values[2].item<float>(), 14);
}

TEST(LoopGradient, TrainsAVariable) {
  Graph g;
  const Output w = variable(g, "w", {}, initializers::constant(0.5));
  const auto [i, y] = while_loop([](Output i, Output) { return i < 3; },
                                 [&](Output i, Output y) {
                                   return std::tuple{i + 1, y * w};
                                 },
                                 constant(g, 0), constant(g, 1.0f));
  const Output dw = gradients({square(y - 8)}, {w})[0];
  const Output update = op("ApplyGradientDescent", {w, constant(g, 0.001f), dw});
  Session session(g);
  session.run({initialize_variables(g)});
  for (int step = 0; step < 300; ++step) session.run({update});
  EXPECT_NEAR(session.run({}, {w})[0].item<float>(), 2, 1e-3);
}

TEST(LoopGradient, ErrorsNameTheLoop) {
  Graph g;
  const Output x = placeholder(g, "x", f32, {});
  Output inside;
  const auto [i, y] = while_loop([](Output i, Output) { return i < 3; },
                                 [&](Output i, Output y) {
                                   inside = y;
                                   return std::tuple{i + 1, y * x};
                                 },
                                 constant(g, 0), x);
  expect_error_with(Code::invalid_argument, "lies in the while loop 'while/frame'",
                    [&, y = y] { gradients({y}, {inside}); });
}

// ---- Conditions ----

TEST(CondGradient, OfTheBranchTaken) {
  for (const bool p : {false, true}) {
    expect_gradients(
        [&](const Outputs& x) {
          const Output predicate = constant(x[0].graph(), p);
          return sum(cond(
              predicate, [&] { return x[0] * x[0] * x[1]; }, [&] { return sin(x[1]); }));
        },
        {vector({0.5, 1.2}), vector({0.3, 0.8})});
  }
}

TEST(CondGradient, OfAValueThatABranchReturns) {
  Graph g;
  const Output x = placeholder(g, "x", f32, {}), p = placeholder(g, "p", DType::boolean, {});
  const Output y = cond(
      p, [&] { return x; }, [&] { return 3; });
  const Output dx = gradients({y * y}, {x})[0];
  Session session(g);
  for (const auto& [taken, value, gradient] : {std::tuple{true, 4.0f, 4.0f}, {false, 9.0f, 0.0f}}) {
    const auto values =
        session.run({{x, Tensor::scalar(2.0f)}, {p, Tensor::scalar(taken)}}, {y * y, dx});
    EXPECT_EQ(values[0].item<float>(), value);
    EXPECT_EQ(values[1].item<float>(), gradient);
  }
}

TEST(CondGradient, OfNestedConditions) {
  for (const double at : {-2.0, -0.5, 0.5, 2.0}) {
    expect_gradients(
        [&](const Outputs& x) {
          return cond(
              x[0] < 0,
              [&] {
                return cond(
                    x[0] < -1, [&] { return x[0] * x[1]; },
                    [&] { return exp(x[0]) * x[1] * x[1]; });
              },
              [&] {
                return cond(
                    x[0] < 1, [&] { return sin(x[0]) + x[1]; }, [&] { return x[0] * x[0] * x[0]; });
              });
        },
        {scalar(at), scalar(0.7)});
  }
}

TEST(CondGradient, InALoop) {
  expect_gradients(
      [](const Outputs& x) {
        const auto [i, y] = while_loop([](Output i, Output) { return i < 5; },
                                       [&](Output i, Output y) {
                                         const Output next = cond(
                                             i % 2 == 0, [&] { return sin(y * x[1]); },
                                             [&] {
                                               return cond(
                                                   i < 2, [&] { return y * y * x[0]; },
                                                   [&] { return y + cos(x[1]); });
                                             });
                                         return std::tuple{i + 1, next};
                                       },
                                       constant(x[0].graph(), 0), x[0]);
        return sum(y);
      },
      {vector({0.5, 1.2}), vector({0.3, 0.8})});
}

TEST(CondGradient, OfALoopInABranch) {
  for (const bool p : {false, true}) {
    expect_gradients(
        [&](const Outputs& x) {
          Graph& g = x[0].graph();
          return sum(cond(
              constant(g, p),
              [&] {
                const auto [i, y] = while_loop([](Output i, Output) { return i < 3; },
                                               [&](Output i, Output y) {
                                                 return std::tuple{i + 1, y * x[1]};
                                               },
                                               constant(g, 0), x[0]);
                return y;
              },
              [&] { return x[0] * x[0] * x[1]; }));
        },
        {vector({0.5, 1.2}), vector({0.3, 0.8})});
  }
}

TEST(CondGradient, OfALoopInABranchInALoop) {
  expect_gradients(
      [](const Outputs& x) {
        Graph& g = x[0].graph();
        const auto [i, y] = while_loop([](Output i, Output) { return i < 4; },
                                       [&](Output i, Output y) {
                                         const Output next = cond(
                                             i % 2 == 0,
                                             [&] {
                                               const auto [j, z] = while_loop(
                                                   [&](Output j, Output) { return j < i; },
                                                   [&](Output j, Output z) {
                                                     return std::tuple{j + 1, sin(z * x[1])};
                                                   },
                                                   constant(g, 0), y);
                                               return z + y;
                                             },
                                             [&] { return y * x[1]; });
                                         return std::tuple{i + 1, next};
                                       },
                                       constant(g, 0), x[0]);
        return sum(y);
      },
      {vector({0.5, 1.2}), vector({0.3, 0.8})});
}

TEST(CondGradient, OfACase) {
  for (const int index : {0, 1, 2, 7}) {
    expect_gradients(
        [&](const Outputs& x) {
          return switch_case(constant(x[0].graph(), index),
                             {[&] { return x[0] * x[0]; }, [&] { return sin(x[0]); },
                              [&] { return exp(x[0]) + x[0]; }});
        },
        {scalar(0.7)});
  }
}

// ---- Loops over an axis ----

TEST(MapGradient, OfElementsAndOuterValues) {
  expect_gradients(
      [](const Outputs& x) {
        return sum(map_fn([&](Output row) { return sin(row * x[1]) * sum(row); }, x[0]));
      },
      {Tensor::of<double>({3, 2}, {1, 2, 3, 4, 5, 6}), vector({0.3, 0.8})});
}

TEST(ScanGradient, InBothDirections) {
  for (const bool reverse : {false, true}) {
    expect_gradients(
        [&](const Outputs& x) {
          const Output all = scan([&](Output y, Output row) { return tanh(y * x[2] + row); }, x[0],
                                  x[1], {.reverse = reverse});
          return sum(square(all));
        },
        {Tensor::of<double>({3, 2}, {.1, .2, .3, .4, .5, .6}), vector({0.3, 0.8}),
         vector({0.9, -0.5})});
  }
}

}  // namespace
}  // namespace leat
