// Gradients that are zero except in some rows: those of tables of which a step reads few rows
// (take(), nn::embedding). They stay rows from backward to the update, so the cost of a step
// depends on its rows, not on the size of the table.
#pragma once

#include <utility>
#include <vector>

#include "graph/gradient.h"

namespace leat {

// Unpacks as the pair of TensorFlow: for (auto& [gradient, variable] : gradients_and_variables).
struct GradientAndVariable {
  // None if nothing depends on the variable, which is then left alone. Else of the variable's shape
  // or, with indices, [n, …]: n rows.
  Output gradient;
  Output variable;
  // [n], int32 or int64: the variable's row for each row of the gradient. Rows of equal index add
  // up. None: the gradient is dense.
  Output indices = {};

  template <size_t i>
  Output& get() & {
    return i == 0 ? gradient : variable;
  }
  template <size_t i>
  const Output& get() const& {
    return i == 0 ? gradient : variable;
  }
  template <size_t i>
  Output get() && {
    return i == 0 ? gradient : variable;
  }
};

// The same gradient with each index once: [m, …] with m <= n, in the order in which they first
// occur. A dense gradient is left as it is.
GradientAndVariable sum_repeated(const GradientAndVariable& gradient, Location at = here());

// The sum of gradients of one variable, none of them empty: concatenated rows if all are rows, else
// dense.
GradientAndVariable sum_of(const std::vector<GradientAndVariable>& gradients, Location at = here());

// The mean over replicas, taken where their variable is; without a gradient counts as 0. Without a
// gradient if none has one.
GradientAndVariable mean_of(const std::vector<GradientAndVariable>& gradients,
                            Location at = here());

// The same gradient, dense: zero where there is no row. It costs as much as the variable is large.
GradientAndVariable densify(const GradientAndVariable& gradient, Location at = here());

}  // namespace leat

template <>
struct std::tuple_size<leat::GradientAndVariable> : std::integral_constant<size_t, 2> {};
template <size_t i>
struct std::tuple_element<i, leat::GradientAndVariable> {
  using type = leat::Output;
};
