#include "frontends/cpp/state/clock.h"

#include "frontends/cpp/outside_control_scopes.h"
#include "frontends/cpp/state/tuple.h"
#include "graph/shape_inference.h"

namespace leat {
namespace {

// An integer scalar as that dtype.
Output integer_of(Graph& graph, const Operand& number, DType dtype, const std::string& what,
                  std::string_view which, Location at) {
  check(number.is_constant() || number.output(), what, ": the ", which, " is an empty Output");
  const Output value = number.is_integer()    ? number.as(graph, dtype)
                       : number.is_constant() ? number.in(graph)
                                              : number.output();
  check(is_integer(value.dtype()), what, ": the ", which, ", '", value.name(), "', is ",
        value.dtype(), ", not an integer");
  check(Shape{}.is_compatible(value.shape()), what, ": the ", which, ", '", value.name(),
        "', must be a scalar, got shape ", value.shape());
  return value.dtype() == dtype ? value : cast(value, dtype, at);
}

}  // namespace

Clock::Clock(Graph& graph, std::string_view name, int64_t members, const ClockOptions& options,
             Location at)
    : name_(name), members_(members) {
  check(members >= 1, "clock '", name, "' (", at, "): it needs at least one member, got ", members);
  const OutsideControlScopes outside(graph);
  handle_ = graph
                .add({.op = "Clock",
                      .name = name_,
                      .attrs = {{"members", members},
                                {"container", options.container},
                                {"shared_name", options.shared_name}},
                      .location = at})
                .output();
}

std::string Clock::what(std::string_view operation, Location at) const {
  return concat(operation, " of the clock '", name_, "' (", at, ")");
}

Node& Clock::add(std::string_view op, std::string_view operation, std::vector<Output> inputs,
                 Location at) const {
  inputs.insert(inputs.begin(), handle_);
  return handle_.graph().add({.op = std::string(op),
                              .name = concat(name_, "_", operation),
                              .inputs = std::move(inputs),
                              .location = at});
}

Output Clock::rank_of(const Operand& rank, std::string_view operation, Location at) const {
  const std::string where = what(operation, at);
  const Output value = integer_of(handle_.graph(), rank, i32, where, "rank", at);
  if (const Tensor known = constant_value(value); known.is_valid()) {
    const int64_t number = known.item<int32_t>();
    check(number >= 0 && number < members_, where, ": there is no member ", number,
          ", the members are 0 to ", members_ - 1);
  }
  return value;
}

Output Clock::tick(const Operand& rank, Location at) const {
  return add("ClockTick", "tick", {rank_of(rank, "tick", at)}, at).output();
}

Output Clock::wait(const Operand& rank, const Operand& staleness, Location at) const {
  const std::string where = what("wait", at);
  const Output limit = integer_of(handle_.graph(), staleness, i64, where, "staleness", at);
  if (const Tensor known = constant_value(limit); known.is_valid()) {
    check(known.item<int64_t>() >= 0, where, ": the staleness must not be negative, got ",
          known.item<int64_t>());
  }
  return add("ClockWait", "wait", {rank_of(rank, "wait", at), limit}, at).output();
}

Output Clock::join(const Operand& rank, Location at) const {
  return add("ClockJoin", "join", {rank_of(rank, "join", at)}, at).output();
}

Node& Clock::leave(const Operand& rank, Location at) const {
  return add("ClockLeave", "leave", {rank_of(rank, "leave", at)}, at);
}

Output Clock::read(Location at) const {
  return with_shape(add("ClockRead", "read", {}, at).output(), {members_}, at);
}

}  // namespace leat
