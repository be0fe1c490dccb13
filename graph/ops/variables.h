// Reads and updates of variables, of both kinds: references (VariableV2) and resource variables
// (VarHandleOp). A resource variable is given as a value that was read from it, which is what
// variable() returns, or as its handle.
#pragma once

#include <string_view>
#include <vector>

#include "graph/ops/operand.h"

namespace leat {

// What the variable holds when the node runs, which is after all that the control scopes name. The
// node is where the variable is. A resource variable needs it where a program reads it again after
// an update in the same step: the value that variable() returned was read before.
Output read_variable(Output variable, Location at = here());
Output is_variable_initialized(Output variable, Location at = here());

// The variable after an update: the reference, or what the resource variable then holds. Such a
// result may be updated in turn, which happens after it. As a Node& it is the node that updates:
//   Node& step = assign_sub(w, 0.1 * gradient);
struct VariableUpdate : Output {
  VariableUpdate(Output result, Node& update) : Output(result), update_(&update) {}
  operator Node&() const { return *update_; }  // NOLINT: converts

 private:
  Node* update_;
};

// A number is a value for all elements.
VariableUpdate assign(Output variable, const TensorLike& value, Location at = here());
VariableUpdate assign_add(Output variable, const TensorLike& value, Location at = here());
VariableUpdate assign_sub(Output variable, const TensorLike& value, Location at = here());
// Rows of the variable by their numbers; updates: the shape of the indices and that of a row, or a
// number.
VariableUpdate scatter_update(Output variable, const TensorLike& indices, const Operand& updates,
                              Location at = here());
VariableUpdate scatter_add(Output variable, const TensorLike& indices, const Operand& updates,
                           Location at = here());
VariableUpdate scatter_sub(Output variable, const TensorLike& indices, const Operand& updates,
                           Location at = here());

// An op that updates references (ApplyAdam, ScatterMax), or for a resource variable its form for
// these: ResourceApplyAdam, ResourceScatterMax, AssignAddVariableOp for AssignAdd. `inputs` are
// those of the former, each variable in the form that it was given in. INVALID_ARGUMENT if
// variables of both kinds are mixed, or the op has no other form.
Node& update_variable(std::string_view op, std::vector<Output> inputs, AttrMap attrs = {},
                      Location at = here());

}  // namespace leat
