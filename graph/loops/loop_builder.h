// Adds the nodes of a while loop to a graph (loops.h).
#pragma once

#include <string>
#include <vector>

#include "graph/graph.h"

namespace leat {

// Add the variables, call start_body(), then set_next() for each. A variable may also be added to a
// loop that already has its body. All nodes are made under the current scopes.
class LoopBuilder {
 public:
  // A new loop. What enters it waits for `after`.
  LoopBuilder(Graph& graph, std::string frame_name, std::vector<Node*> after, Location at);
  // The existing loop of that frame, with `condition` as its LoopCond.
  LoopBuilder(Node& condition, std::string frame_name, std::vector<Node*> after);

  // Returns the variable's number. `shape` is its shape in every iteration, as far as known.
  int add_variable(Output initial, const Shape& shape = Shape::unknown());
  void start_body(Output predicate);
  // The step fails if the value turns out to have another shape than the variable. INVALID_ARGUMENT
  // if it cannot have that shape.
  void set_next(int variable, Output value);

  int size() const { return static_cast<int>(variables_.size()); }
  Output merged(int variable) const { return variables_[variable].merged; }  // for the condition
  Output in_body(int variable) const { return variables_[variable].in_body; }
  Output result(int variable) const { return variables_[variable].result; }

 private:
  struct Variable {
    Output merged, in_body, result;
    Shape shape;
    std::string next;  // the name of its NextIteration, which is made last
  };
  Output add(std::string_view op, std::vector<Output> inputs, AttrMap attrs = {});
  Output ensured(Output value, const Shape& shape);
  void branch(Variable& variable);

  Graph& graph_;
  const std::string frame_;
  const std::vector<Node*> after_;
  const Location at_;
  Output go_on_;  // the LoopCond
  std::vector<Variable> variables_;
};

}  // namespace leat
