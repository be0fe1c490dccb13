// The inputs and outputs of one update of variables, for the loops of update_rule.h on both sides,
// which include it after the header that defines LEAT_DEVICE. A launch copies it.
#pragma once

#include <cstdint>

#include "kernels/types.h"

namespace leat {

struct UpdatePlan {
  static constexpr int max_scalars = 8;
  int scalars[max_scalars] = {};  // positions of the scalar inputs, such as rates
  int num_scalars = 0;
  bool ends_with_step = false;  // the last scalar is an int64, whatever T is
  bool option = false;          // the flag passed to the rule
  int gradient = 0;
  int indices = -1;  // for an update of rows; the gradient has a row for each
  bool wide_indices = false;
  int64_t rows = 0, row_elements = 0;  // of var; a dense update has one row
  int64_t count = 1;                   // of indices
};

// The rule with the current values of the scalars; `from` has the inputs.
template <class Rule, class T, class From>
LEAT_DEVICE Rule rule_now(const UpdatePlan& plan, const From& from) {
  using C = ComputeType<T>;
  C scalars[UpdatePlan::max_scalars] = {};
  for (int i = 0; i < UpdatePlan::max_scalars; ++i) {
    if (i >= plan.num_scalars) break;
    const bool is_step = plan.ends_with_step && i + 1 == plan.num_scalars;
    scalars[i] = is_step ? static_cast<C>(*from.template input<int64_t>(plan.scalars[i]))
                         : static_cast<C>(*from.template input<T>(plan.scalars[i]));
  }
  return Rule(scalars, plan.option);
}

template <class From>
LEAT_DEVICE int64_t index_at(const UpdatePlan& plan, const From& from, int64_t i) {
  return plan.wide_indices ? from.template input<int64_t>(plan.indices)[i]
                           : from.template input<int32_t>(plan.indices)[i];
}

}  // namespace leat
