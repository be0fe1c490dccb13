#include "graph/loops/conditions.h"

#include <algorithm>

namespace leat {

Pivots add_pivots(Output predicate, Location at) {
  Graph& graph = predicate.graph();
  Node& sides = graph.add(
      {.op = "Switch", .name = "Switch", .inputs = {predicate, predicate}, .location = at});
  const auto add = [&](std::string_view name, int side) -> Node& {
    return graph.add({.op = "Identity",
                      .name = std::string(name),
                      .inputs = {sides.output(side)},
                      .attrs = {{std::string(pivot_attr), ""}},
                      .location = at});
  };
  Node &if_true = add("if_true", 1), &if_false = add("if_false", 0);
  if_true.attrs.insert_or_assign(pivot_attr, if_false.name);
  if_false.attrs.insert_or_assign(pivot_attr, if_true.name);
  return {&if_true, &if_false};
}

bool is_pivot(const Node& node) { return node.attrs.contains(pivot_attr); }

Node& other_pivot(const Node& pivot) {
  Node* const other = pivot.graph->find(pivot.attr<std::string>(pivot_attr));
  check(other != nullptr, describe(pivot), ": the graph lacks the other branch, '",
        pivot.attr<std::string>(pivot_attr), "'");
  return *other;
}

Output predicate_of(const Node& pivot) { return pivot.inputs[0].node->inputs[1]; }
bool is_of_true_side(const Node& pivot) { return pivot.inputs[0].index == 1; }

std::vector<Node*> pivots_of(const Node& node) {
  std::vector<Node*> out;
  std::copy_if(node.control_inputs.begin(), node.control_inputs.end(), std::back_inserter(out),
               [](const Node* control) { return is_pivot(*control); });
  return out;
}

std::vector<Node*> pivots_beyond(const std::vector<Node*>& inner, const std::vector<Node*>& outer) {
  std::vector<Node*> out;
  std::copy_if(inner.begin(), inner.end(), std::back_inserter(out), [&](Node* pivot) {
    return std::find(outer.begin(), outer.end(), pivot) == outer.end();
  });
  return out;
}

}  // namespace leat
