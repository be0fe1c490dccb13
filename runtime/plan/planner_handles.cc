// Variables, resources and the handles that lead to them.
#include "runtime/plan/planner.h"

#include <algorithm>

#include "core/state/resource.h"
#include "runtime/node_states.h"

namespace leat {
namespace {

// Does the session have it for itself?
bool is_private(const Node& node) {
  if (!node.op->is_private_resource || !node.attr<std::string>("shared_name").empty()) return false;
  constexpr const char* shared = "use_node_name_sharing";
  return !node.view().has(shared) || !node.attr<bool>(shared);
}

}  // namespace

void Planner::resolve_handle(const Node& node, State& s) {
  for (size_t i = 0; i < node.inputs.size(); ++i) {
    if (!is_handle_input(node, static_cast<int>(i))) continue;
    const State& from = state(*node.inputs[i].node);
    const bool is_first = s.variable < 0 && s.resource < 0;
    const bool must_be_one = s.kind == ItemKind::merge || node.is("IdentityN");
    check(is_first || !must_be_one || (s.variable == from.variable && s.resource == from.resource),
          node.op->name, " node '", node.name,
          "' may pass on different variables; merge their values instead");
    if (is_first) s.variable = from.variable, s.resource = from.resource;
  }
  check(s.variable >= 0 || s.resource >= 0, node.op->name, " node '", node.name,
        "' passes on a reference that does not lead to a variable");
}

bool Planner::find_value_handle(const Node& node, State& s) {
  if (node.outputs[0].is_ref) return false;
  const auto is_passed = [&] {
    return std::any_of(node.inputs.begin(), node.inputs.end(),
                       [&](const Output& input) { return state(*input.node).is_value_handle; });
  };
  s.is_value_handle = s.role == Role::feed ||
                      (s.role == Role::boundary && s.kind == ItemKind::execute) || is_passed();
  if (s.is_value_handle && s.role == Role::segment) {  // Identity
    s.role = Role::boundary;
    s.kind = ItemKind::execute;
    static const auto pass_on = std::make_shared<const Kernel>(
        Kernel{.execute = [](ExecuteContext& c) { c.set_output(0, c.input(0)); }});
    s.kernel = pass_on;
  }
  return s.is_value_handle;
}

bool Planner::is_fixed_handle(const Output& output) {
  return output.is_handle() && !state(*output.node).is_value_handle;
}

void Planner::check_dtype(const Node& node, const Output& handle) {
  const int variable = state(*handle.node).variable;
  if (handle.is_ref() || variable < 0) return;
  const DType held = plan_.variables[variable]->dtype();
  for (const char* name : {"dtype", "T"}) {
    const auto attr = node.attrs.find(name);
    if (attr == node.attrs.end() || !attr->second.is<DType>()) continue;
    const auto wanted = attr->second.get<DType>();
    if (wanted == held || wanted == DType::resource) continue;
    fail_at(node.name, Code::invalid_argument, node.op->name, ": the variable '",
            plan_.variables[variable]->name(), "' holds ", held, ", not ", wanted);
  }
}

AttrMap Planner::with_constant_inputs(const Node& node) {
  AttrMap out = node.attrs;
  const std::vector<ArgDef>& names = node.op->schema.inputs;  // no lists among those of resources
  for (size_t i = 0; i < node.inputs.size() && i < names.size(); ++i) {
    const State& from = state(*node.inputs[i].node);
    if (from.role == Role::constant) out.emplace(names[i].name, plan_.constants[from.constant]);
  }
  return out;
}

int Planner::add_resource(const Node& node) {
  const AttrMap attrs = with_constant_inputs(node);
  const NodeView view{node.name, node.op->name, attrs};
  auto resource = is_private(node) ? private_resource(view, *node.op)
                                   : containers_.resource(node.attr<std::string>("container"),
                                                          node.op->make_resource(view));
  resource->check_fits(view);
  plan_.resources.push_back(std::move(resource));
  return static_cast<int>(plan_.resources.size()) - 1;
}

std::shared_ptr<Resource> Planner::private_resource(const NodeView& node, const OpDef& op) {
  const std::lock_guard lock(node_states_.mutex());
  std::shared_ptr<void>& state = node_states_.of(node.name);
  if (!state) state = op.make_resource(node);
  return std::static_pointer_cast<Resource>(state);
}

void Planner::add_variable(const Node& node, State& s) {
  const auto kind = node.outputs[0].is_ref ? VariableKind::reference : VariableKind::resource;
  auto variable = containers_.variable(node.attr<std::string>("container"),
                                       resource_name(node.view()), node.attr<DType>("dtype"), kind);
  const auto [known, is_new] =
      variables_.try_emplace(variable.get(), static_cast<int>(plan_.variables.size()));
  s.variable = known->second;
  if (!is_new) return;
  plan_.variables.push_back(std::move(variable));
  plan_.variable_shapes.push_back(node.outputs[0].shape);
}

}  // namespace leat
