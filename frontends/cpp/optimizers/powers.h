// Powers that optimizers keep beside the variables: beta^t of the t-th update. Not for programs.
#pragma once

#include <string_view>

#include "frontends/cpp/variables.h"

namespace leat {

// A variable called `name`, without prefix as TensorFlow's, beside the first variable that is
// trained; it begins with `value`.
Output make_shared_number(Graph& graph, Output first, std::string_view name, double value);
// The same for base^t: it begins with that of t = 1.
inline Output make_power(Graph& graph, Output first, std::string_view name, double base) {
  return make_shared_number(graph, first, name, base);
}
// Multiplies the number by a factor.
Output next_power(Output power, const Operand& factor);
Output in_dtype_of(Output variable, Output power);

}  // namespace leat
