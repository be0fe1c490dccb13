#include "frontends/cpp/optimizers/powers.h"

namespace leat {

Output make_shared_number(Graph& graph, Output first, std::string_view name, double value) {
  const ColocationScope with(graph, {first});
  const NameScope absolute(graph, copy_root_of(graph, variable_name(first)));
  return variable(graph, name, {}, initializers::constant(value), first.dtype(),
                  {.trainable = false, .use_resource = is_resource_variable(first)});
}

Output next_power(Output power, const Operand& factor) {
  const ColocationScope with(power.graph(), {power});
  return {&update_variable("Assign", {power, power * factor}, {{"use_locking", false}}), 0};
}

Output in_dtype_of(Output variable, Output power) {
  return power.dtype() == variable.dtype() ? power : cast(power, variable.dtype());
}

}  // namespace leat
