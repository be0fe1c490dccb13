#include "graph/loops/loop_builder.h"

#include "graph/loops/loops.h"

namespace leat {

LoopBuilder::LoopBuilder(Graph& graph, std::string frame_name, std::vector<Node*> after,
                         Location at)
    : graph_(graph), frame_(std::move(frame_name)), after_(std::move(after)), at_(at) {}

LoopBuilder::LoopBuilder(Node& condition, std::string frame_name, std::vector<Node*> after)
    : graph_(*condition.graph),
      frame_(std::move(frame_name)),
      after_(std::move(after)),
      at_(condition.location),
      go_on_(condition.output()) {}

Output LoopBuilder::add(std::string_view op, std::vector<Output> inputs, AttrMap attrs) {
  return graph_
      .add({.op = std::string(op),
            .inputs = std::move(inputs),
            .attrs = std::move(attrs),
            .location = at_})
      .output();
}

Output LoopBuilder::ensured(Output value, const Shape& shape) {
  if (value.shape().merged(shape) == value.shape()) return value;
  return add("EnsureShape", {value}, {{"shape", shape}});
}

int LoopBuilder::add_variable(Output initial, const Shape& shape) {
  Variable variable;
  variable.shape = shape;
  initial = ensured(initial, shape);
  const Output enter = [&] {
    const ControlScope after(graph_, after_);
    return add("Enter", {initial}, {{"frame_name", frame_}});
  }();
  variable.next = graph_.unique_name(graph_.scopes().name + "NextIteration");
  graph_.reserve_name(variable.next);
  variable.merged = add("Merge", {enter, enter}, {{std::string(back_edge_attr), variable.next}});
  // The shape is known here and where gradients are made, not where the graph is imported: what
  // came over the wire is not believed.
  variable.merged.node->outputs.write()[0].shape = shape;
  if (go_on_) branch(variable);
  variables_.push_back(std::move(variable));
  return size() - 1;
}

void LoopBuilder::branch(Variable& variable) {
  Node* const sides = add("Switch", {variable.merged, go_on_}).node;
  variable.result = add("Exit", {sides->output(0)});
  variable.in_body = add("Identity", {sides->output(1)});
}

void LoopBuilder::start_body(Output predicate) {
  go_on_ = add("LoopCond", {predicate});
  for (Variable& variable : variables_) branch(variable);
}

void LoopBuilder::set_next(int variable, Output value) {
  const Shape& shape = variables_[variable].shape;
  value = ensured(value, shape);
  graph_.insert({.op = "NextIteration",
                 .name = variables_[variable].next,
                 .inputs = {value},
                 .location = at_},
                {});
}

}  // namespace leat
