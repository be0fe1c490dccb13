// Conditions: cond(predicate, if_true, if_false), and switch_case() for more than two branches.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "frontends/cpp/control_flow/values.h"

namespace leat {

struct CondOptions {
  std::string name = "cond";
};

// What one of two functions gives, of which only the nodes of one run:
//
//   Output y = cond(less(i, n), [&] { return x * 2; }, [&] { return x - 1; });
//   auto [a, b] = cond(p, [&] { return std::tuple{x, y}; }, [&] { return std::tuple{y, x}; });
//
// Both are called to add their nodes. They give as many values, of the same dtypes (a number gets
// that of the other branch's value); shapes may differ. What they use of the graph around them is
// computed in any case. gradients() goes through. Make variables outside: in a branch their
// initialisers would belong to it. The predicate is a scalar bool. INVALID_ARGUMENT if the
// branches do not fit each other.
template <class IfTrue, class IfFalse>
auto cond(Output predicate, const IfTrue& if_true, const IfFalse& if_false,
          const CondOptions& options = {}, Location at = here());

// The value of the branch of that number, int32 or int64; of the last, if there is none of it.
Output switch_case(Output index, const std::vector<std::function<Output()>>& branches,
                   const CondOptions& options = {}, Location at = here());

// ---- How it is done ----

std::vector<Output> make_cond(Output predicate,
                              const std::function<std::vector<Operand>()>& if_true,
                              const std::function<std::vector<Operand>()>& if_false,
                              const CondOptions& options, Location at);

template <class IfTrue, class IfFalse>
auto cond(Output predicate, const IfTrue& if_true, const IfFalse& if_false,
          const CondOptions& options, Location at) {
  return values::like<decltype(if_true())>(make_cond(
      predicate, [&] { return values::list(if_true()); }, [&] { return values::list(if_false()); },
      options, at));
}

}  // namespace leat
