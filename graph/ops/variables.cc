#include "graph/ops/variables.h"

#include "graph/variable_node.h"

namespace leat {
namespace {

// ResourceApplyAdam of ApplyAdam, AssignAddVariableOp of AssignAdd.
const OpDef& form_for_resources(std::string_view op, const Node& variable, Location at) {
  for (const std::string& name : {concat("Resource", op), concat(op, "VariableOp")}) {
    if (const OpDef* form = find_op(name)) return *form;
  }
  fail(Code::invalid_argument, op, " (", at, ") is not supported for '", variable.name,
       "': there is no form of it for resource variables");
}

// What was read after an update: who goes on from there comes after that, too.
bool is_ordered_read(const Output& variable) {
  return variable && !variable.is_handle() && variable_node(variable) != nullptr &&
         !variable.node->control_inputs.empty();
}

// Of the dtype and shape of what the variable holds.
Output value_of(const Output& variable, Location at) {
  return variable && variable.dtype() == DType::resource ? read_variable(variable, at) : variable;
}

VariableUpdate updated(std::string_view op, std::vector<Output> inputs, Location at) {
  Node& update = update_variable(op, std::move(inputs), {}, at);
  if (!update.outputs.empty()) return {update.output(), update};
  const ControlScope after(*update.graph, {update});
  return {read_variable(update.inputs[0], at), update};
}

}  // namespace

Output read_variable(Output variable, Location at) {
  const Node* node = variable_node(variable);
  check(node != nullptr, "read_variable (", at, "): '", variable.name(), "' is not a variable");
  Graph& graph = variable.graph();
  const Output handle = variable_handle(variable);
  const ColocationScope with(graph, {handle});
  if (handle.is_ref()) return op("Identity", {handle}, {}, at);
  const ControlScope after(
      graph, is_ordered_read(variable) ? std::vector<Node*>{variable.node} : std::vector<Node*>{});
  return op("ReadVariableOp", {handle}, {{"dtype", node->attr<DType>("dtype")}}, at);
}

Output is_variable_initialized(Output variable, Location at) {
  const Output handle = variable_handle(variable);
  return op(handle.dtype() == DType::resource ? "VarIsInitializedOp" : "IsVariableInitialized",
            {handle}, {}, at);
}

Node& update_variable(std::string_view op, std::vector<Output> inputs, AttrMap attrs, Location at) {
  const OpDef& def = op_named(op);
  check(!inputs.empty() && inputs[0], op, " (", at, "): the variable is an empty Output");
  Graph& graph = inputs[0].graph();
  const Node* variable = variable_node(inputs[0]);
  if (variable == nullptr || !is_resource_variable(*variable->op))
    return op_node(graph, op, inputs, std::move(attrs), at);
  const OpDef& form = form_for_resources(op, *variable, at);
  std::vector<Node*> before;
  for (size_t i = 0; i < inputs.size() && i < def.schema.inputs.size(); ++i) {
    if (!def.schema.inputs[i].is_ref) continue;
    if (is_ordered_read(inputs[i])) before.push_back(inputs[i].node);
    inputs[i] = variable_handle(inputs[i]);
  }
  if (form.schema.attr("use_locking") == nullptr) attrs.erase("use_locking");
  // Assign checks the shape by default, AssignVariableOp only if validate_shape is set.
  const AttrDef* checks_shape = def.schema.attr("validate_shape");
  if (checks_shape != nullptr) attrs.emplace("validate_shape", *checks_shape->default_value);
  const ControlScope after(graph, before);
  return op_node(graph, form.name, inputs, std::move(attrs), at);
}

VariableUpdate assign(Output variable, const TensorLike& value, Location at) {
  return updated("Assign", {variable, value.like(value_of(variable, at))}, at);
}
VariableUpdate assign_add(Output variable, const TensorLike& value, Location at) {
  return updated("AssignAdd", {variable, value.like(value_of(variable, at))}, at);
}
VariableUpdate assign_sub(Output variable, const TensorLike& value, Location at) {
  return updated("AssignSub", {variable, value.like(value_of(variable, at))}, at);
}

VariableUpdate scatter_update(Output variable, const TensorLike& indices, const Operand& updates,
                              Location at) {
  return updated("ScatterUpdate",
                 {variable, indices.in(variable.graph()), updates.as(value_of(variable, at))}, at);
}
VariableUpdate scatter_add(Output variable, const TensorLike& indices, const Operand& updates,
                           Location at) {
  return updated("ScatterAdd",
                 {variable, indices.in(variable.graph()), updates.as(value_of(variable, at))}, at);
}
VariableUpdate scatter_sub(Output variable, const TensorLike& indices, const Operand& updates,
                           Location at) {
  return updated("ScatterSub",
                 {variable, indices.in(variable.graph()), updates.as(value_of(variable, at))}, at);
}

}  // namespace leat
