// Gradients that are zero but for some rows: of tables of which a step reads a few (take(),
// nn::embedding). They stay rows from backward to the update, so that a step costs what its rows
// cost, whatever the size of the table.
#pragma once

#include <vector>

#include "graph/gradient.h"

namespace leat {

struct GradientAndVariable {
  // None: nothing depends on the variable; it is left alone. Else of the variable's shape, or, with
  // indices, [n, …] of a row each.
  Output gradient;
  Output variable;
  // [n], int32 or int64: to which row of the variable each row of the gradient belongs. Rows of
  // equal index add up. None: the gradient is of the whole variable.
  Output indices = {};
};

// The same gradient with each index once: [m, …] with m <= n, in the order in which they first
// occur. A gradient of the whole is left as it is.
GradientAndVariable sum_repeated(const GradientAndVariable& gradient, Location at = here());

// The sum of gradients of one variable, which are not empty: rows behind rows if all are rows, else
// of the whole.
GradientAndVariable sum_of(const std::vector<GradientAndVariable>& gradients, Location at = here());

// The same gradient of the whole variable, zero where there is no row. It costs as much as the
// variable is large.
GradientAndVariable densify(const GradientAndVariable& gradient, Location at = here());

}  // namespace leat
