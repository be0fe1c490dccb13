// Values passed on, checked and chosen: what control flow is made of. Conditions and loops of C++
// programs are in frontends/cpp/control_flow/.
#pragma once

#include "graph/ops/operand.h"

namespace leat {

inline std::vector<Output> identity_n(const std::vector<Output>& x, Location at = here()) {
  return op_outputs("IdentityN", x, {}, at);
}
inline Output prevent_gradient(Output x, std::string_view message, Location at = here()) {
  return op("PreventGradient", {x}, {{"message", message}}, at);
}
inline Output placeholder_with_default(Output x, const Shape& shape, Location at = here()) {
  return op("PlaceholderWithDefault", {x}, {{"shape", shape}}, at);
}
// Inputs of any types: the condition, then what the error shows.
inline Node& assert_that(Output condition, std::vector<Output> data, Location at = here()) {
  data.insert(data.begin(), condition);
  return op_node(condition.graph(), "Assert", data, {}, at);
}
inline Node& no_op(Graph& graph, std::string_view name = "NoOp", Location at = here()) {
  return graph.add({.op = "NoOp", .name = std::string(name), .location = at});
}
// {if false, if true}: the other one is dead.
inline std::vector<Output> switch_on(Output data, Output pred, Location at = here()) {
  return op_outputs("Switch", {data, pred}, {}, at);
}
// {the live input, its number}
inline std::vector<Output> merge(const std::vector<Output>& inputs, Location at = here()) {
  return op_outputs("Merge", inputs, {}, at);
}

}  // namespace leat
