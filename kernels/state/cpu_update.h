// The CPU's side of update_rule.h: loops that the compiler vectorises.
#pragma once

#include <utility>

#include "core/error.h"
#include "kernels/cpu.h"
#include "kernels/cpu_loops.h"
#include "kernels/state/update_plan.h"

namespace leat {
namespace cpu {

// n elements of var and its slots from `at` on, with the gradient's elements from `from` on.
template <class Rule, class T, size_t... slot>
void update_elements(const Rule& given, const Arguments& a, int gradient, int64_t at, int64_t from,
                     int64_t n, std::index_sequence<slot...>) {
  using C = ComputeType<T>;
  T* const variables[] = {a.ref<T>(slot) + at...};
  const T* grad = a.input<T>(gradient) + from;
  const auto run = [&](const auto& form) {
    vectorized([&]() LEAT_INLINE {
      const auto rule = form;  // a copy that no store can alias
      T* const to[] = {variables[slot]...};
      const T* const g = grad;
      LEAT_INDEPENDENT_ITERATIONS
      for (int64_t i = 0; i < n; ++i) {
        C values[] = {C(to[slot][i])...};
        rule(values, C(g[i]));
        ((to[slot][i] = T(values[slot])), ...);
      }
    });
  };
  // A rule may have another form for some of its rates: rule.for_rates(run) calls run with one.
  if constexpr (requires { given.for_rates(run); }) {
    given.for_rates(run);
  } else {
    run(given);
  }
}

}  // namespace cpu

template <class Rule, class T>
BoundKernel bind_update(const KernelRequest& /*request*/, const UpdatePlan& plan) {
  constexpr int64_t grain = 16384;
  return BoundKernel::of([plan](const Arguments& a) {
    const auto slots = std::make_index_sequence<Rule::variables>{};
    const Rule rule = rule_now<Rule, T>(plan, a);
    if constexpr (requires { rule.check_rates(); }) rule.check_rates();
    if (plan.indices < 0) {
      a.stream->parallel_for(plan.row_elements, grain, [&](int64_t begin, int64_t end) {
        cpu::update_elements<Rule, T>(rule, a, plan.gradient, begin, begin, end - begin, slots);
      });
      return;
    }
    for (int64_t i = 0; i < plan.count; ++i) {  // checks all before any row changes
      const int64_t row = index_at(plan, a, i);
      check(row >= 0 && row < plan.rows, "Index ", row, " at offset ", i,
            " in indices is out of range [0, ", plan.rows, ")");
    }
    // In order, one index at a time: both updates of a repeated index count.
    for (int64_t i = 0; i < plan.count; ++i) {
      cpu::update_elements<Rule, T>(rule, a, plan.gradient,
                                    index_at(plan, a, i) * plan.row_elements, i * plan.row_elements,
                                    plan.row_elements, slots);
    }
  });
}

}  // namespace leat
