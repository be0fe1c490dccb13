// Loops: while_loop(condition, body, variables…).
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <tuple>
#include <vector>

#include "frontends/cpp/control_flow/values.h"

namespace leat {

struct LoopOptions {
  std::optional<int64_t> maximum_iterations = {};
  // The shape that each variable has in all iterations; left out: that of its initial value. `any`
  // for extents that change, Shape::unknown() where even the rank does.
  std::vector<Shape> shapes = {};
  std::string name = "while";
};

// The variables after `body` has been applied to them as often as `condition` held:
//
//   auto [i, power] = while_loop([](Output i, Output) { return i < 10; },
//                                [&](Output i, Output power) { return std::tuple{i + 1, power * x};
//                                }, 0, ones_like(x));
//
// A variable may begin with a number: 0 is an int32, 0.0 a float32; at least one is an Output.
// Both functions are called to add their nodes, once; what they use of the graph around them is
// taken into the loop as it is when the loop starts. `condition` gives a scalar bool, or the C++
// value true with .maximum_iterations: a loop of that many iterations. `body` gives a
// value for each variable, of the same dtype and shape (LoopOptions::shapes for one that grows). A
// loop runs on the device of the scope it is made in, or where the state is that it changes.
// Results: an Output for one variable, else something to be unpacked, with as many.
// INVALID_ARGUMENT if the functions do not fit the variables.
//
// gradients() goes through loops, of any depth and order (graph/loops/loop_gradient.h). It makes
// the loop keep what its body's gradient needs of each iteration: memory grows with their number.

template <class Condition, class Body, values::Value... Others>
auto while_loop(const Condition& condition, const Body& body, const Operand& variable,
                const Others&... others);

// With options, one variable: while_loop(condition, body, x, {.maximum_iterations = 10}).
template <class Condition, class Body>
Output while_loop(const Condition& condition, const Body& body, const Operand& variable,
                  const LoopOptions& options);

// With options: the variables in a tuple (or an array).
template <class Condition, class Body, values::TupleOfValues Variables>
auto while_loop(const Condition& condition, const Body& body, const Variables& variables,
                const LoopOptions& options = {}, Location at = here());

// A number of variables that the program computes: functions of std::vector<Output>, which `body`
// gives, too.
std::vector<Output> while_loop(
    const std::function<Output(const std::vector<Output>&)>& condition,
    const std::function<std::vector<Output>(const std::vector<Output>&)>& body,
    const std::vector<Output>& variables, const LoopOptions& options = {}, Location at = here());

// ---- How it is done ----

// What all of these do.
std::vector<Output> make_loop(
    const std::function<Output(const std::vector<Output>&)>& condition,
    const std::function<std::vector<Operand>(const std::vector<Output>&)>& body,
    const std::vector<Operand>& variables, const LoopOptions& options, Location at);

// The predicate of a condition that computes nothing. INVALID_ARGUMENT if the loop would not end.
Output fixed_condition(bool holds, const std::vector<Output>& variables, const LoopOptions& options,
                       Location at);

template <class Condition, class Body, values::TupleOfValues Variables>
auto while_loop(const Condition& condition, const Body& body, const Variables& variables,
                const LoopOptions& options, Location at) {
  constexpr size_t count = std::tuple_size_v<Variables>;
  return values::like<Variables>(make_loop(
      [&](const std::vector<Output>& v) -> Output {
        using Result = std::remove_cvref_t<decltype(values::apply<count>(condition, v))>;
        if constexpr (std::same_as<Result, bool>) {
          return fixed_condition(values::apply<count>(condition, v), v, options, at);
        } else {
          return values::apply<count>(condition, v);
        }
      },
      [&](const std::vector<Output>& v) { return values::list(values::apply<count>(body, v)); },
      values::list(variables), options, at));
}

template <class Condition, class Body>
Output while_loop(const Condition& condition, const Body& body, const Operand& variable,
                  const LoopOptions& options) {
  return while_loop(condition, body, std::array<Operand, 1>{variable}, options, variable.at())[0];
}

template <class Condition, class Body, values::Value... Others>
auto while_loop(const Condition& condition, const Body& body, const Operand& variable,
                const Others&... others) {
  const auto out = while_loop(
      condition, body, std::array<Operand, 1 + sizeof...(Others)>{variable, Operand(others)...}, {},
      variable.at());
  if constexpr (sizeof...(Others) == 0) {
    return out[0];
  } else {
    return out;
  }
}

}  // namespace leat
