// Functions that stay functions, because a node's kernel calls them: those of datasets
// (functions.h).
#include <algorithm>

#include "core/error.h"
#include "graph/function_inliner.h"
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
  std::vector<std::string> variables;
  const FunctionBody body = part_of(node, attr(node, name).func(), part, variables);
  const auto& signature = library_.find(attr(node, name).func().name())->signature();
  std::vector<std::string> results, effects;
  for (int i = 0; i < signature.output_arg_size(); ++i) {
    const std::string& result = body.results[i];
    results.push_back(result.find(':') == std::string::npos ? result + ":0" : result);
    if (is_fetchable(signature.output_arg(i).type())) continue;
    // Only this op's value can be a variant that leaves a graph.
    NodeDef& last = *part.add_node();
    last.set_name(concat("result_", i));
    last.set_op("_Result");
    last.add_input(result);
    (*last.mutable_attr())["T"] = type_attr(signature.output_arg(i).type());
    results.back() = last.name() + ":0";
  }
  for (const std::string& effect : body.effects) effects.push_back(effect.substr(1));
  FunctionInliner(part, library_, expansion_).run();
  expansion_.active.pop_back();
  auto& attrs = *node.mutable_attr();
  const std::string prefix = "_leat_" + name;
  attrs[prefix] = string_attr(part.SerializeAsString());
  attrs[prefix + "_arguments"] = int_attr(signature.input_arg_size());
  attrs[prefix + "_variables"] = strings_attr(variables);
  attrs[prefix + "_results"] = strings_attr(results);
  attrs[prefix + "_effects"] = strings_attr(effects);
}

const NodeDef* FunctionInliner::captured_variable(const NodeDef& node,
                                                  const tensorflow::FunctionDef& function,
                                                  int i) const {
  const auto types = node.attr().find("Targuments");
  if (types == node.attr().end()) return nullptr;
  const int captured = types->second.list().type_size();
  const int input = 1 + i - (function.signature().input_arg_size() - captured);
  if (input < 1 || input > captured || input >= node.input_size()) return nullptr;
  const auto found = variables_.find(node_of(node.input(input)));
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
                                      GraphDef& part, std::vector<std::string>& variables) {
  NodeDef caller = node;
  caller.clear_device();
  FunctionCall call{
      .caller = caller, .function = function, .scope = node.name(), .arguments = {}, .after = {}};
  const tensorflow::FunctionDef* known = library_.find(function.name());
  for (int i = 0; known != nullptr && i < known->signature().input_arg_size(); ++i) {
    NodeDef& argument = *part.add_node();
    if (const NodeDef* variable = captured_variable(node, *known, i)) {
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
