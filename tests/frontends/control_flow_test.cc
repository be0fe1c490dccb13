// What cond(), switch_case(), while_loop(), map_fn(), scan() and function() compute and reject. For
// their gradients see control_flow_gradients_test.cc.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "frontends/cpp/control_flow/cond.h"
#include "frontends/cpp/control_flow/function.h"
#include "frontends/cpp/control_flow/map_fn.h"
#include "frontends/cpp/control_flow/while_loop.h"
#include "frontends/cpp/session.h"
#include "frontends/cpp/variables.h"
#include "graph/gradient.h"
#include "tests/support/expect_error.h"

namespace leat {
namespace {

using testing::ElementsAre;
using Outputs = std::vector<Output>;

template <class T = float>
std::vector<T> values(Session& session, const Feeds& feeds, Output x) {
  const Tensor value = session.run(feeds, {x})[0];
  return {value.span<T>().begin(), value.span<T>().end()};
}
template <class T = float>
std::vector<T> values(Output x) {
  Session session(x.graph());
  return values<T>(session, {}, x);
}

class ControlFlow : public testing::Test {
 protected:
  Graph g;
};

// ---- cond ----

TEST_F(ControlFlow, ConditionsRunOneBranch) {
  const Output p = placeholder(g, "p", DType::boolean, {});
  const Output yes = variable(g, "yes", {}), no = variable(g, "no", {});
  const Output y = cond(
      p, [&] { return assign_add(yes, constant(g, 1.0f)); },
      [&] { return assign_add(no, constant(g, 1.0f)) * 10; });
  Session session(g);
  session.run({initialize_variables(g)});
  const auto run = [&](bool taken) { return values(session, {{p, Tensor::scalar(taken)}}, y); };
  EXPECT_THAT(run(true), ElementsAre(1));
  EXPECT_THAT(run(true), ElementsAre(2));
  EXPECT_THAT(run(false), ElementsAre(10));
  EXPECT_THAT(values(session, {}, yes), ElementsAre(2));
  EXPECT_THAT(values(session, {}, no), ElementsAre(1));
}

TEST_F(ControlFlow, ConditionsReturnAsManyValuesAsTheirBranches) {
  const Output x = constant(g, {1.f, 2.f}), p = placeholder(g, "p", DType::boolean, {});
  const auto [a, b] = cond(
      p,
      [&] {
        return std::tuple{x, x * 2};
      },
      [&] {
        return std::tuple{x * 3, 0};
      });
  const Outputs list = cond(
      p, [&] { return Outputs{x}; }, [&] { return Outputs{x + 1}; });
  Session session(g);
  const Feeds yes = {{p, Tensor::scalar(true)}}, no = {{p, Tensor::scalar(false)}};
  EXPECT_THAT(values(session, yes, a), ElementsAre(1, 2));
  EXPECT_THAT(values(session, yes, b), ElementsAre(2, 4));
  EXPECT_THAT(values(session, no, a), ElementsAre(3, 6));
  EXPECT_THAT(values(session, no, b), ElementsAre(0));
  EXPECT_THAT(values(session, no, list[0]), ElementsAre(2, 3));
}

TEST_F(ControlFlow, BranchOfConstantsRunsOnlyWhenTaken) {
  const Output p = placeholder(g, "p", DType::boolean, {});
  const Output y = cond(
      p, [&] { return constant(g, 1.0f) + constant(g, 2.0f); },
      [&] {
        return constant(g, {5.f, 6.f});
      });
  Session session(g);
  EXPECT_THAT(values(session, {{p, Tensor::scalar(true)}}, y), ElementsAre(3));
  EXPECT_THAT(values(session, {{p, Tensor::scalar(false)}}, y), ElementsAre(5, 6));
}

TEST_F(ControlFlow, SwitchCaseUsesTheLastBranchForOtherNumbers) {
  const Output i = placeholder(g, "i", i32, {});
  const Output y =
      switch_case(i, {[&] { return constant(g, 10.f); }, [&] { return constant(g, 20.f); },
                      [&] { return constant(g, 30.f); }});
  Session session(g);
  for (const auto& [index, value] :
       {std::pair{0, 10.f}, {1, 20.f}, {2, 30.f}, {3, 30.f}, {-1, 30.f}})
    EXPECT_THAT(values(session, {{i, Tensor::scalar(index)}}, y), ElementsAre(value)) << index;
}

TEST_F(ControlFlow, RejectsMismatchedConditions) {
  const Output x = constant(g, 1.f), p = constant(g, true);
  const auto refuse = [&](std::string_view text, const std::function<void()>& build) {
    expect_error_with(Code::invalid_argument, text, build);
    expect_error_with(Code::invalid_argument, "control_flow_test.cc:", build);
  };
  refuse("the predicate must be a scalar bool, not float[]", [&] {
    cond(
        x, [&] { return x; }, [&] { return x; });
  });
  refuse("the predicate is an empty Output", [&] {
    cond(
        Output(), [&] { return x; }, [&] { return x; });
  });
  refuse("value 0 is float[] in one branch and int32[] in the other", [&] {
    cond(
        p, [&] { return x; }, [&] { return constant(g, 1); });
  });
  refuse("one branch returns 1 values, the other 2", [&] {
    cond(
        p, [&] { return Outputs{x}; },
        [&] {
          return Outputs{x, x};
        });
  });
  refuse("a branch returns an empty Output as value 0", [&] {
    cond(
        p, [&] { return x; }, [&] { return Output(); });
  });
  refuse("it has no branches", [&] { switch_case(constant(g, 1), {}); });
}

// ---- Loops ----

TEST_F(ControlFlow, RunsLoopsOfOneAndSeveralVariables) {
  const Output doubled =
      while_loop([](Output x) { return x < 100; }, [](Output x) { return x * 2; }, constant(g, 3));
  const auto [i, a, b] = while_loop([](Output i, Output, Output) { return i < 10; },
                                    [](Output i, Output a, Output b) {
                                      return std::tuple{i + 1, b, a + b};
                                    },
                                    constant(g, 0), constant(g, 0), constant(g, 1));
  const auto stopped =
      while_loop([](Output i, Output) { return i >= 0; },
                 [](Output i, Output x) {
                   return std::tuple{i + 1, x};
                 },
                 std::tuple{constant(g, 0), constant(g, 1.f)}, {.maximum_iterations = 7});
  EXPECT_THAT(values<int32_t>(doubled), ElementsAre(192));
  EXPECT_THAT(values<int32_t>(a), ElementsAre(55));
  EXPECT_THAT(values<int32_t>(stopped[0]), ElementsAre(7));
}

TEST_F(ControlFlow, NumbersTakeTheDtypeOfTheVariable) {
  const auto [i, x] = while_loop([](Output i, Output) { return i < 2; },
                                 [](Output i, Output) {
                                   return std::tuple{i + 1, 7};
                                 },
                                 constant(g, 0), constant(g, 1.5f));
  EXPECT_THAT(values(x), ElementsAre(7));
}

TEST_F(ControlFlow, RunsMapsAndScans) {
  const Output x = constant(g, {{1.f, 2.f}, {3.f, 4.f}, {5.f, 6.f}});
  const Output sums = map_fn([](Output row) { return sum(row); }, x);
  EXPECT_THAT(values(sums), ElementsAre(3, 7, 11));
  const Outputs two = map_fn(
      [](const Outputs& v) {
        return Outputs{v[0] * v[1], cast(v[1], i32)};
      },
      {x, sums});
  EXPECT_THAT(values(two[0]), ElementsAre(3, 6, 21, 28, 55, 66));
  EXPECT_THAT(values<int32_t>(two[1]), ElementsAre(3, 7, 11));
  const auto add = [](Output y, Output row) { return y + row; };
  const Output zero = constant(g, {0.f, 0.f});
  EXPECT_THAT(values(scan(add, x, zero)), ElementsAre(1, 2, 4, 6, 9, 12));
  EXPECT_THAT(values(scan(add, x, zero, {.reverse = true})), ElementsAre(9, 12, 8, 10, 5, 6));
  EXPECT_EQ(Session(g).run({}, {scan(add, x, zero)})[0].shape(), (Shape{3, 2}));
}

TEST_F(ControlFlow, RejectsMismatchedMaps) {
  const Output x = constant(g, {1.f, 2.f}), y = constant(g, {1.f, 2.f, 3.f});
  const auto refuse = [&](std::string_view text, const std::function<void()>& build) {
    expect_error_with(Code::invalid_argument, text, build);
  };
  const auto same_value = [](Output v) { return v; };
  refuse("is a scalar: it has no axis to iterate over",
         [&] { map_fn(same_value, constant(g, 1.f)); });
  refuse("has [3], but input 0 has [2]", [&] {
    map_fn([](const Outputs& v) { return v; }, {x, y});
  });
  refuse("the function returns state 0 with dtype int32 instead of float",
         [&] { scan([](Output s, Output) { return cast(s, i32); }, x, constant(g, 1.f)); });
}

// ---- Functions ----

TEST_F(ControlFlow, BuildsAFunctionOnceForManyCalls) {
  int written = 0;
  Function f = function(g, "f", {f32}, [&](Output a) {
    ++written;
    return a * a;
  });
  const Output x = constant(g, {2.f, 3.f});
  const Output y = f(x) + f(f(constant(g, 2.f)));
  EXPECT_EQ(written, 1);
  EXPECT_THAT(values(y), ElementsAre(20, 25));
  EXPECT_THAT(values(gradients({y}, {x})[0]), ElementsAre(4, 6));
}

TEST_F(ControlFlow, CallsShareVariablesAndOuterValues) {
  const Output outside = constant(g, 100.f);
  Function count = function(g, "count", {f32}, [&](Output by) {
    const Output w = variable(g, "w", {});
    return assign_add(w, by) + outside;
  });
  const Output first = count(1.f);
  Output second;
  {
    const ControlScope after(g, Outputs{first});
    second = count(10.f);
  }
  Session session(g);
  session.run({initialize_variables(g)});
  const auto got = session.run({}, {first, second});
  EXPECT_EQ(got[1].item<float>(), 111);
  EXPECT_EQ(g.collection("variables").size(), 1u);
}

TEST_F(ControlFlow, FunctionsMayHoldLoopsAndConditions) {
  Function f = function(g, "f", {f32, i32}, [&](Output x, Output n) {
    const auto [i, y] = while_loop(
        [&](Output i, Output) { return i < n; },
        [&](Output i, Output y) {
          return std::tuple{i + 1, cond(
                                       i % 2 == 0, [&] { return y * x; }, [&] { return y + 1; })};
        },
        constant(g, 0), x);
    return std::tuple{y, i};
  });
  const Output x = placeholder(g, "x", f32, {});
  expect_error_with(Code::invalid_argument, "gives 2 results: f.call({x}) returns them all",
                    [&] { f(x, 3); });
  const Outputs three = f.call({x, 3}), two = f.call({x, 2});
  const Output dx = gradients({three[0] + two[0]}, {x})[0];
  Session session(g);
  const Feeds at = {{x, Tensor::scalar(3.0f)}};
  EXPECT_THAT(values(session, at, three[0]), ElementsAre(30));  // (x x + 1) x
  EXPECT_THAT(values(session, at, two[0]), ElementsAre(10));
  EXPECT_THAT(values<int32_t>(session, at, three[1]), ElementsAre(3));
  EXPECT_THAT(values(session, at, dx), ElementsAre(28 + 6));
}

TEST_F(ControlFlow, RejectsMismatchedCalls) {
  Function f = function(g, "f", {f32}, [](Output a) { return a * a; });
  expect_error_with(Code::invalid_argument, "argument 0 must be float, not int32",
                    [&] { f(constant(g, 1)); });
  expect_error_with(Code::invalid_argument, "it takes 1 argument, not 2", [&] { f(1.f, 2.f); });
  expect_error_with(Code::invalid_argument, "its body takes 1 arguments, but there are 2 dtypes",
                    [&] {
                      function(g, "g", {f32, f32}, [](Output a) { return a; });
                    });
}

// ---- What is left out ----

TEST_F(ControlFlow, ConditionsThatAreAlwaysTrue) {
  const Output one = constant(g, 1);
  const auto twice = [](Output v) { return v * 2; };
  EXPECT_THAT(values<int32_t>(
                  while_loop([](Output) { return true; }, twice, one, {.maximum_iterations = 10})),
              ElementsAre(1024));
  EXPECT_THAT(values<int32_t>(while_loop([](Output) { return false; }, twice, one)),
              ElementsAre(1));
  EXPECT_THAT(values<int32_t>(while_loop([](Output v) { return v < 100; }, twice, one,
                                         {.maximum_iterations = 3})),
              ElementsAre(8));
  expect_error_with(Code::invalid_argument, "the loop would not end",
                    [&] { while_loop([](Output) { return true; }, twice, one); });
}

TEST_F(ControlFlow, ScansAndFoldsFromTheFirstElement) {
  const Output x = constant(g, {1.0, 2.0, 3.0, 4.0});
  const auto less_product = [](Output a, Output b) { return a * b - 1; };
  EXPECT_THAT(values(scan(less_product, x)), ElementsAre(1, 1, 2, 7));
  EXPECT_THAT(values(scan(less_product, x, {.reverse = true})), ElementsAre(20, 21, 11, 4));
  EXPECT_THAT(values(foldl(less_product, x)), ElementsAre(7));
  EXPECT_THAT(values(foldr(less_product, x)), ElementsAre(20));
  EXPECT_THAT(values(gradients(foldl(less_product, x), x)[0]), ElementsAre(24, 12, 4, 2));
}

TEST_F(ControlFlow, ScansSeveralStates) {
  const auto [a, b] = scan(
      [](Output a, Output b, Output x) {
        return std::tuple{b, a + b * x};
      },
      constant(g, {1, 1, 1, 1, 1}), std::tuple{constant(g, 0), 1});
  EXPECT_THAT(values<int32_t>(a), ElementsAre(1, 1, 2, 3, 5));
  EXPECT_THAT(values<int32_t>(b), ElementsAre(1, 2, 3, 5, 8));
}

}  // namespace
}  // namespace leat
