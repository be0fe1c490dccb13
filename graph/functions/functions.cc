#include "graph/functions/functions.h"

#include <algorithm>

#include "core/error.h"
#include "graph/endpoint.h"
#include "graph/functions/function_inliner.h"
#include "graph/graph.h"
#include "graph/import/proto_codec.h"
#include "graph/proto/graph.pb.h"
#include "graph/variable_node.h"

namespace leat {
namespace {

using tensorflow::GraphDef;
using tensorflow::NameAttrList;
using tensorflow::NodeDef;

constexpr size_t most_nodes = 200'000;
constexpr size_t most_bytes = size_t{1} << 31;  // as of a GraphDef

}  // namespace

tensorflow::AttrValue type_attr(tensorflow::DataType type) {
  tensorflow::AttrValue out;
  out.set_type(type);
  return out;
}
tensorflow::AttrValue int_attr(int64_t value) {
  tensorflow::AttrValue out;
  out.set_i(value);
  return out;
}
tensorflow::AttrValue bool_attr(bool value) {
  tensorflow::AttrValue out;
  out.set_b(value);
  return out;
}
tensorflow::AttrValue string_attr(const std::string& value) {
  tensorflow::AttrValue out;
  out.set_s(value);
  return out;
}

tensorflow::AttrValue strings_attr(const std::vector<std::string>& values) {
  tensorflow::AttrValue out;
  out.mutable_list();
  for (const std::string& value : values) out.mutable_list()->add_s(value);
  return out;
}

FunctionInliner::FunctionInliner(GraphDef& def, const FunctionLibrary& library,
                                 FunctionExpansion& expansion)
    : def_(def), library_(library), expansion_(expansion) {}

FunctionInliner::Caller::Caller(const NodeDef& node) : node(node) {
  for (const std::string& input : node.input())
    (input.starts_with('^') ? after : inputs).push_back(input);
}

void FunctionInliner::run() {
  google::protobuf::RepeatedPtrField<NodeDef> nodes;
  nodes.Swap(def_.mutable_node());
  for (const NodeDef& node : nodes) {
    take_name(node.name());
    const OpDef* op = find_op(node.op());
    if (op != nullptr && is_resource_variable(*op)) add_variable(node);
  }
  for (NodeDef& node : nodes) add(std::move(node));
  for (NodeDef& node : *def_.mutable_node()) {
    for (std::string& input : *node.mutable_input()) use_directly(input);
  }
}

void FunctionInliner::add_variable(NodeDef node) {
  const std::string name = node.name();
  variables_.emplace(name, std::make_shared<const NodeDef>(std::move(node)));
}

bool FunctionInliner::has_work() const {
  return std::any_of(def_.node().begin(), def_.node().end(), [&](const NodeDef& node) {
    return is_functional(node) || !functions_of(node).empty();
  });
}

bool FunctionInliner::is_call(const NodeDef& node) {
  return node.op() == "PartitionedCall" || node.op() == "StatefulPartitionedCall";
}

bool FunctionInliner::is_if(const NodeDef& node) {
  return node.op() == "If" || node.op() == "StatelessIf";
}

bool FunctionInliner::is_case(const NodeDef& node) {
  return node.op() == "Case" || node.op() == "StatelessCase";
}

bool FunctionInliner::is_while(const NodeDef& node) {
  return node.op() == "While" || node.op() == "StatelessWhile";
}

bool FunctionInliner::is_gradient(const NodeDef& node) { return node.op() == "SymbolicGradient"; }

bool FunctionInliner::is_functional(const NodeDef& node) const {
  return is_call(node) || is_if(node) || is_case(node) || is_while(node) || is_gradient(node) ||
         library_.find(node.op()) != nullptr;
}

void FunctionInliner::add(NodeDef node) {
  if (!is_functional(node)) {
    write_functions(node);
    if (!expansion_.active.empty()) count(node);
    *def_.add_node() = std::move(node);
    return;
  }
  if (++expansion_.depth > deepest)
    refuse(node, concat("calls are nested deeper than ", deepest, " here"));
  if (is_call(node)) {
    add_call(Caller(node), attr(node, "f").func(), types(node, "Tout"));
  } else if (is_if(node)) {
    add_if(Caller(node));
  } else if (is_case(node)) {
    add_case(Caller(node));
  } else if (is_while(node)) {
    add_while(Caller(node));
  } else if (is_gradient(node)) {
    add_symbolic_gradient(Caller(node));
  } else {
    add_legacy_call(Caller(node));
  }
  --expansion_.depth;
}

void FunctionInliner::count(const NodeDef& node) {
  expansion_.bytes += node.ByteSizeLong();
  if (++expansion_.nodes <= most_nodes && expansion_.bytes <= most_bytes) return;
  fail(Code::invalid_argument, "the functions that the graph calls have more than ", most_nodes,
       " nodes or ", most_bytes, " bytes, counted once per call");
}

void FunctionInliner::refuse(const NodeDef& node, const std::string& why,
                             const std::string& inner) {
  Status status{Code::invalid_argument,
                concat("node '", node.name(), "' (", node.op(), "): ", why)};
  status.node = inner;
  throw Error(with_node(std::move(status), node.name()));
}

const tensorflow::AttrValue& FunctionInliner::attr(const NodeDef& node, const std::string& name) {
  const auto found = node.attr().find(name);
  if (found == node.attr().end())
    refuse(node, concat("attribute '", name, "' is missing and has no default"));
  return found->second;
}

FunctionInliner::Types FunctionInliner::types(const NodeDef& node, const std::string& name) {
  Types out;
  for (const int type : attr(node, name).list().type())
    out.push_back(static_cast<tensorflow::DataType>(type));
  return out;
}

FunctionInliner::Types FunctionInliner::input_types(const Caller& caller, const std::string& name) {
  Types out = types(caller.node, name);
  if (out.size() != caller.inputs.size()) {
    refuse(caller.node,
           concat("has ", caller.inputs.size(), " inputs, but ", out.size(), " types for them"));
  }
  return out;
}

std::string FunctionInliner::scope(const Caller& caller, std::string_view part) {
  return free_name(concat(caller.node.name(), "/", part));
}

std::string FunctionInliner::free_name(const std::string& wanted) {
  if (taken_.insert(wanted).second) return wanted;
  int& number = numbers_[wanted];  // where to go on counting
  std::string name;
  do name = concat(wanted, "_", ++number);
  while (!taken_.insert(name).second);
  return name;
}

void FunctionInliner::take_name(const std::string& name, size_t known) {
  for (size_t end = name.find('/', known); end != std::string::npos; end = name.find('/', end + 1))
    taken_.insert(name.substr(0, end));
  taken_.insert(name);
}

std::string FunctionInliner::add_part(const Caller& caller, std::string_view what,
                                      const std::string& op, const std::vector<std::string>& inputs,
                                      std::vector<std::pair<std::string, AttrValue>> attrs) {
  NodeDef node;
  node.set_name(free_name(concat(caller.node.name(), "/", what)));
  node.set_op(op);
  node.set_device(caller.node.device());
  for (const std::string& input : inputs) node.add_input(input);
  for (auto& [name, value] : attrs) {
    // What has a variable passes it on where the variable is.
    if (name == "T" && value.type() == tensorflow::DT_RESOURCE) node.clear_device();
    (*node.mutable_attr())[name] = std::move(value);
  }
  std::string name = node.name();
  add(std::move(node));
  return name;
}

bool FunctionInliner::is_fetchable(tensorflow::DataType type) {
  return type != tensorflow::DT_RESOURCE && type != tensorflow::DT_VARIANT;
}

void FunctionInliner::add_results(const Caller& caller, std::vector<std::string> results,
                                  const Types& types, const std::vector<std::string>& after) {
  if (results.size() != types.size()) {
    refuse(caller.node, concat("asks for ", types.size(), " results, but the functions return ",
                               results.size()));
  }
  Types kept = types;
  const auto value = std::find_if(types.begin(), types.end(), is_fetchable);
  const auto at = value - types.begin();
  for (size_t i = 0; i < types.size(); ++i) {
    if (is_fetchable(types[i])) continue;
    // No value that a node could hand on with others: its users get it directly.
    direct_[Endpoint{caller.node.name(), static_cast<int>(i)}.short_name()] = results[i];
    if (value == types.end()) continue;
    results[i] = results[at];
    kept[i] = *value;
  }
  NodeDef node;
  node.set_name(caller.node.name());
  node.set_device(caller.node.device());
  if (value == types.end()) {
    node.set_op("NoOp");
  } else if (types.size() == 1) {
    node.set_op("Identity");
    (*node.mutable_attr())["T"] = type_attr(*value);
  } else {
    node.set_op("IdentityN");
    for (const tensorflow::DataType type : kept)
      (*node.mutable_attr())["T"].mutable_list()->add_type(type);
  }
  if (value != types.end()) {
    for (const std::string& result : results) node.add_input(result);
  }
  for (const std::string& signal : after) node.add_input(signal);
  add(std::move(node));
}

void FunctionInliner::use_directly(std::string& input) const {
  for (int hops = 0; hops < static_cast<int>(deepest) && !input.starts_with('^'); ++hops) {
    const std::optional<Endpoint> endpoint = Endpoint::parse(input);
    const auto found = direct_.find(endpoint ? endpoint->short_name() : input);
    if (found == direct_.end()) return;
    input = found->second;
  }
}

FunctionBody FunctionInliner::add_body(const FunctionCall& call) {
  FunctionBody body = instantiate(library_, call);
  enter(call);
  for (const NodeDef& node : body.nodes) take_name(node.name(), call.scope.size() + 1);
  for (NodeDef& node : body.nodes) add(std::move(node));
  expansion_.active.pop_back();
  body.nodes.clear();
  return body;
}

void FunctionInliner::enter(const FunctionCall& call) {
  std::vector<std::string>& active = expansion_.active;
  if (std::find(active.begin(), active.end(), call.function.name()) != active.end()) {
    refuse(call.caller,
           concat("function '", call.function.name(), "' calls itself, which is not supported"));
  }
  if (!expansion_.gradients.empty() && !library_.gradient_of(call.function.name()).empty()) {
    refuse(call.caller, concat("the gradient of '", expansion_.gradients.back(),
                               "' goes through function '", call.function.name(),
                               "', which has a gradient function of its own "
                               "(grad_func): call it outside of other functions"));
  }
  active.push_back(call.function.name());
}

void FunctionInliner::add_call(const Caller& caller, const NameAttrList& function,
                               const Types& types) {
  const FunctionBody body =
      add_body({.caller = caller.node,
                .function = function,
                .scope = scope(caller, "call"),
                .arguments = caller.inputs,
                .after = caller.after,
                .is_there_before = std::vector<bool>(caller.inputs.size(), true)});
  std::vector<std::string> after = caller.after;
  after.insert(after.end(), body.effects.begin(), body.effects.end());
  add_results(caller, body.results, types, after);
}

void FunctionInliner::add_legacy_call(const Caller& caller) {
  NameAttrList function;
  function.set_name(caller.node.op());
  *function.mutable_attr() = caller.node.attr();
  Types types;
  for (const auto& result : library_.find(caller.node.op())->signature().output_arg()) {
    if (!result.number_attr().empty() || !result.type_list_attr().empty())
      refuse(caller.node, "results that are lists are not supported");
    types.push_back(result.type_attr().empty() ? result.type()
                                               : attr(caller.node, result.type_attr()).type());
  }
  add_call(caller, function, types);
}

void inline_functions(GraphDef& def, const Graph& graph) {
  const FunctionLibrary library(def.library());
  FunctionExpansion expansion;
  FunctionInliner inliner(def, library, expansion);
  if (!inliner.has_work()) return;
  for (const auto& node : graph.nodes()) {
    if (!is_resource_variable(*node->op)) continue;
    NodeDef variable;
    write_node(*node, /*assigned_device=*/false, variable);
    inliner.add_variable(std::move(variable));
  }
  inliner.run();
}

void drop_written_functions(GraphDef& def) {
  const auto drop_from = [](NodeDef& node) {
    std::vector<std::string> written;
    for (const auto& [name, value] : node.attr()) {
      if (name.starts_with("_leat_")) written.push_back(name);
    }
    for (const std::string& name : written) node.mutable_attr()->erase(name);
  };
  for (NodeDef& node : *def.mutable_node()) drop_from(node);
  for (auto& function : *def.mutable_library()->mutable_function()) {
    for (NodeDef& node : *function.mutable_node_def()) {
      drop_from(node);
      check(!node.op().starts_with('_'), "function '", function.signature().name(), "': node '",
            node.name(), "' (", node.op(), "): ops that start with '_' are the runtime's own");
    }
  }
}

}  // namespace leat
