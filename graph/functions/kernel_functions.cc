// Functions that stay functions, because a node's kernel calls them: those of datasets
// (functions.h).
#include <algorithm>

#include "core/error.h"
#include "graph/endpoint.h"
#include "graph/functions/function_inliner.h"
#include "graph/op_def.h"
#include "graph/proto/graph.pb.h"
#include "graph/refused_ops.h"

namespace leat {

using tensorflow::NodeDef;

std::vector<std::string> FunctionInliner::functions_of(const NodeDef& node) const {
  std::vector<std::string> out;
  if (std::none_of(node.attr().begin(), node.attr().end(),
                   [](const auto& attr) { return attr.second.has_func(); }))
    return out;
  const OpDef* op = find_op(node.op());
  if (op == nullptr || !refusal(op->name).empty()) return out;
  for (const AttrDef& attr : op->schema.attrs) {
    const auto found = node.attr().find(attr.name);
    if (attr.kind == "func" && found != node.attr().end() &&
        !node.attr().contains("_leat_" + attr.name))
      out.push_back(attr.name);
  }
  return out;
}

void FunctionInliner::write_functions(NodeDef& node) {
  for (const std::string& name : functions_of(node)) {
    if (++expansion_.depth > deepest)
      refuse(node, concat("functions are nested deeper than ", deepest, " here"));
    write_function(node, name);
    --expansion_.depth;
  }
}

void FunctionInliner::write_function(NodeDef& node, const std::string& name) {
  GraphDef part;
  *part.mutable_versions() = def_.versions();
  std::vector<std::string> variables;
  const CapturedInputs captured = captured_inputs(node, name);
  const FunctionBody body = part_of(node, attr(node, name).func(), captured, part, variables);
  const auto& signature = library_.find(attr(node, name).func().name())->signature();
  std::vector<std::string> handles, results, effects;
  for (int i = 0; i < signature.input_arg_size(); ++i) {
    if (signature.input_arg(i).type() == tensorflow::DT_RESOURCE)
      handles.push_back(concat("argument:", i));
  }
  for (int i = 0; i < signature.output_arg_size(); ++i) {
    const std::string& result = body.results[i];
    results.push_back(Endpoint::complete(result));
    if (is_fetchable(signature.output_arg(i).type())) continue;
    // Only this op's value can be a variant that leaves a graph.
    NodeDef& last = *part.add_node();
    last.set_name(concat("result_", i));
    last.set_op("_Result");
    last.add_input(result);
    (*last.mutable_attr())["T"] = type_attr(signature.output_arg(i).type());
    results.back() = Endpoint{last.name()}.full_name();
  }
  for (const std::string& effect : body.effects) effects.push_back(effect.substr(1));
  FunctionInliner(part, library_, expansion_).run();
  expansion_.active.pop_back();
  auto& attrs = *node.mutable_attr();
  const std::string prefix = "_leat_" + name;
  attrs[prefix] = string_attr(part.SerializeAsString());
  attrs[prefix + "_arguments"] = int_attr(signature.input_arg_size());
  attrs[prefix + "_captured"] = int_attr(captured.count);
  attrs[prefix + "_captured_from"] = int_attr(captured.first);
  attrs[prefix + "_handles"] = strings_attr(handles);
  attrs[prefix + "_variables"] = strings_attr(variables);
  attrs[prefix + "_results"] = strings_attr(results);
  attrs[prefix + "_effects"] = strings_attr(effects);
}

FunctionInliner::CapturedInputs FunctionInliner::captured_inputs(const NodeDef& node,
                                                                 const std::string& name) {
  const std::string own = name + "_other_arguments";
  CapturedInputs out;
  for (const ArgDef& input : op_named(node.op()).schema.inputs) {
    int64_t count = 1;
    if (!input.number_attr.empty()) count = attr(node, input.number_attr).i();
    if (!input.type_list_attr.empty()) count = attr(node, input.type_list_attr).list().type_size();
    if (count < 0 || count > node.input_size() - out.first)
      refuse(node, concat("its input '", input.name, "' has ", count, " values, but it has only ",
                          node.input_size(), " inputs"));
    out.count = static_cast<int>(count);
    if (input.name == own || input.name == "other_arguments") return out;
    out.first += out.count;
  }
  return {};
}

const NodeDef* FunctionInliner::variable_at(const NodeDef& node, int input) const {
  const auto found = variables_.find(std::string(node_of(node.input(input))));
  return found == variables_.end() ? nullptr : found->second.get();
}

NodeDef FunctionInliner::handle_on(const NodeDef& variable) {
  NodeDef out = variable;
  std::string& name = *(*out.mutable_attr())["shared_name"].mutable_s();
  if (name.empty()) name = variable.name();
  out.clear_device();
  out.clear_input();
  out.mutable_attr()->erase("_class");
  return out;
}

FunctionBody FunctionInliner::part_of(const NodeDef& node, const NameAttrList& function,
                                      const CapturedInputs& captured, GraphDef& part,
                                      std::vector<std::string>& variables) {
  NodeDef caller = node;
  caller.clear_device();
  FunctionCall call{
      .caller = caller, .function = function, .scope = node.name(), .arguments = {}, .after = {}};
  const tensorflow::FunctionDef* known = library_.find(function.name());
  const int arguments = known == nullptr ? 0 : known->signature().input_arg_size();
  for (int i = 0; i < arguments; ++i) {
    NodeDef& argument = *part.add_node();
    const int number = i - (arguments - captured.count);  // among the captured
    const NodeDef* variable = number < 0 ? nullptr : variable_at(node, captured.first + number);
    if (variable != nullptr) {
      argument = handle_on(*variable);
      variables.push_back(concat("argument:", i));
    } else {
      argument.set_op("_Feed");
      (*argument.mutable_attr())["dtype"] = type_attr(known->signature().input_arg(i).type());
      (*argument.mutable_attr())["name"] = string_attr(concat("argument:", i));
    }
    argument.set_name(concat("argument_", i));
    call.arguments.push_back(argument.name());
  }
  FunctionBody body = instantiate(library_, call);
  enter(call);
  for (NodeDef& inner : body.nodes) {
    inner.clear_device();
    inner.mutable_attr()->erase("_class");
    *part.add_node() = std::move(inner);
  }
  return body;
}

}  // namespace leat
