// Functions with a gradient of the program's own.
#pragma once

#include <concepts>
#include <type_traits>
#include <vector>

#include "frontends/cpp/control_flow/values.h"
#include "graph/custom_gradient.h"

namespace leat {

// f(x…), whose gradient is what `backward` gives: it gets the x, then a gradient for each result of
// `f`, and gives a gradient for each x, an Output or a tuple of them, of the shape and dtype of x.
//
//   // log(1 + exp(x)), whose gradient does not overflow.
//   Output z = custom_gradient([](Output x) { return log(1 + exp(x)); },
//                              [](Output x, Output dz) { return dz * sigmoid(x); }, x);
//   // As it is, but gradients are at most 1.
//   Output held = custom_gradient([](Output x) { return x; },
//                                 [](Output, Output dy) { return clip(dy, -1, 1); }, x);
//
// gradients() goes through `backward` for second derivatives, which uses only what it is given: in
// loops, what a lambda captures belongs to no iteration. What `f` uses besides its arguments gets
// no gradient. An x has one result here even if `f` is a function of a variable: give the variable
// as an x. As tf.custom_gradient.
template <class F, class Backward, std::convertible_to<Output>... Others>
auto custom_gradient(const F& f, const Backward& backward, const Operand& x,
                     const Others&... others) {
  constexpr size_t inputs = 1 + sizeof...(Others);
  const Location at = x.at();
  check(!x.is_constant() && x.output(), "custom_gradient (", at, "): x must be an Output");
  const std::vector<Output> xs = {x.output(), Output(others)...};
  using Result = decltype(values::apply<inputs>(f, xs));
  std::vector<Output> ys;
  for (const Operand& y : values::list(values::apply<inputs>(f, xs)))
    ys.push_back(y.in(xs.front().graph()));
  constexpr size_t results = [] {
    if constexpr (values::TupleOfValues<Result>) {
      return std::tuple_size_v<std::remove_cvref_t<Result>>;
    } else {
      return size_t{1};
    }
  }();
  static_assert(!values::Vector<Result>,
                "the function of a custom_gradient gives one Output or a "
                "tuple of them");
  const auto gradient = [backward](const std::vector<Output>& x, const std::vector<Output>&,
                                   const std::vector<Output>& dys) {
    std::vector<Output> arguments = x;
    arguments.insert(arguments.end(), dys.begin(), dys.end());
    std::vector<Output> out;
    for (const Operand& dx : values::list(values::apply<inputs + results>(backward, arguments)))
      out.push_back(dx.in(arguments.front().graph()));
    return out;
  };
  return values::like<Result>(with_gradient(xs, ys, gradient, at));
}

}  // namespace leat
