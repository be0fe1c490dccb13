#include "frontends/cpp/state/counter.h"

#include "graph/variable_node.h"

namespace leat {

Counter::Counter(Graph& graph, std::string_view name, const CounterOptions& options, Location at)
    : name_(name),
      variable_(leat::variable(
          graph, name, {}, initializers::constant(Tensor::scalar(options.start)), i64,
          {.trainable = false, .container = options.container, .shared_name = options.shared_name},
          at)) {}

Output Counter::increment(const Operand& by, Location at) const {
  check(by.is_constant() || by.output(), "increment of the counter '", name_, "' (", at,
        "): the number is an empty Output");
  const ColocationScope with(variable_.graph(), {variable_});
  Output more = by.as(variable_.graph(), i64);
  check(is_integer(more.dtype()), "increment of the counter '", name_, "' (", at, "): '",
        more.name(), "' is ", more.dtype(), ", not an integer");
  if (more.dtype() != i64) more = cast(more, i64, at);
  return identity(assign_add(variable_, more, at), at);
}

Output Counter::count_up_to(int64_t limit, Location at) const {
  if (is_resource_variable(variable_))
    return op("ResourceCountUpTo", {variable_handle(variable_)},
              {{"limit", limit}, {"T", variable_.dtype()}}, at);
  return op("CountUpTo", {variable_}, {{"limit", limit}}, at);
}

Output Counter::value(Location at) const { return identity(variable_, at); }

}  // namespace leat
