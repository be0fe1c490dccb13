#include "frontends/cpp/control_flow/function.h"

#include <algorithm>
#include <unordered_map>

#include "graph/loops/conditions.h"
#include "graph/loops/loops.h"

namespace leat {

struct Function::Body {
  std::string scope;  // "f/": all of its nodes are called so
  std::vector<Output> arguments, results;
  std::vector<const Node*> nodes;  // what the results need, but the arguments
};

namespace {

// What is made once, whatever uses it: variables, queues, tables.
bool is_state(const Node& node) {
  return node.inputs.empty() && node.outputs.size() == 1 && node.outputs[0].is_handle();
}

std::vector<const Node*> needed_by(const std::vector<Output>& results, size_t first) {
  std::vector<const Node*> out, pending;
  std::vector<bool> seen;
  const auto need = [&](const Node* node) {
    if (node->id < static_cast<int>(first) || is_state(*node)) return;
    seen.resize(std::max(seen.size(), static_cast<size_t>(node->id) + 1));
    if (seen[node->id]) return;
    seen[node->id] = true;
    pending.push_back(node);
  };
  for (const Output& result : results) need(result.node);
  while (!pending.empty()) {
    const Node* node = pending.back();
    pending.pop_back();
    out.push_back(node);
    for (const Output& input : node->inputs) need(input.node);
    for (const Node* control : node->control_inputs) need(control);
    if (const Node* next = next_iteration(*node)) need(next);
  }
  std::sort(out.begin(), out.end(), [](const Node* a, const Node* b) { return a->id < b->id; });
  return out;
}

// Attributes that name other nodes of the body, or its frames.
AttrMap renamed(const AttrMap& attrs, const std::string& from, const std::string& to) {
  const auto rename = [&](std::string& name, std::string_view prefix) {
    if (name.starts_with(concat(prefix, from)))
      name = concat(prefix, to, name.substr(prefix.size() + from.size()));
  };
  AttrMap out = attrs;
  for (const std::string_view key : {back_edge_attr, pivot_attr, std::string_view("frame_name")}) {
    if (!attrs.contains(key)) continue;
    std::string name = attrs.at(key).get<std::string>();
    rename(name, "");
    out.insert_or_assign(key, std::move(name));
  }
  if (attrs.contains("_class")) {
    auto names = attrs.at("_class").get<std::vector<std::string>>();
    for (std::string& name : names) rename(name, "loc:@");
    out.insert_or_assign("_class", std::move(names));
  }
  return out;
}

}  // namespace

Function make_function(Graph& graph, std::string_view name, const std::vector<DType>& arguments,
                       const std::function<std::vector<Operand>(const std::vector<Output>&)>& body,
                       Location at) {
  const std::string title = concat("function '", name, "' (", at, ")");
  check(!arguments.empty(), title, ": it needs an argument");
  const NameScope scope(graph, name);
  auto made = std::make_shared<Function::Body>();
  made->scope = scope.name();
  for (const DType dtype : arguments)
    made->arguments.push_back(placeholder(graph, "argument", dtype, Shape::unknown(), at));
  const size_t first = graph.size();
  const std::vector<Operand> results = body(made->arguments);
  check(!results.empty(), title, ": it returns no result");
  for (size_t i = 0; i < results.size(); ++i) {
    check(!results[i].is_constant() && results[i].output(), title, ": result ", i,
          " must be an Output");
    made->results.push_back(results[i].output());
  }
  made->nodes = needed_by(made->results, first);
  return Function(std::move(made));
}

std::vector<Output> Function::call(const std::vector<Operand>& arguments, Location at) const {
  const Body& body = *body_;
  Graph& graph = body.arguments[0].graph();
  const std::string title = concat("a call of the function '", body.scope, "' (", at, ")");
  check(arguments.size() == body.arguments.size(), title, ": it takes ", body.arguments.size(),
        " arguments, not ", arguments.size());
  std::unordered_map<const Node*, std::vector<Output>> outputs;  // what stands for a body's node
  for (size_t i = 0; i < arguments.size(); ++i) {
    const DType dtype = body.arguments[i].dtype();
    check(arguments[i].is_constant() || arguments[i].output(), title, ": argument ", i,
          " is an empty Output");
    const Output argument = arguments[i].as(graph, dtype);
    check(argument.dtype() == dtype, title, ": argument ", i, " must be ", dtype, ", not ",
          argument.dtype());
    outputs[body.arguments[i].node] = {argument};
  }
  const NameScope scope(graph, body.scope.substr(0, body.scope.size() - 1));
  const Graph::Scopes& scopes = graph.scopes();
  for (const Node* node : body.nodes) {
    std::vector<Output> inputs;
    std::vector<Node*> controls = scopes.control_inputs;
    const auto mapped = [&](const Output& output) {
      const auto found = outputs.find(output.node);
      return found == outputs.end() ? output : found->second[output.index];
    };
    for (const Output& input : node->inputs) inputs.push_back(mapped(input));
    for (Node* control : node->control_inputs) {
      const auto found = outputs.find(control);
      Node* const after = found == outputs.end() ? control : found->second[0].node;
      if (std::find(controls.begin(), controls.end(), after) == controls.end())
        controls.push_back(after);
    }
    Node& copy = graph.insert({.op = node->op->name,
                               .name = scope.name() + node->name.substr(body.scope.size()),
                               .inputs = std::move(inputs),
                               .attrs = renamed(node->attrs, body.scope, scope.name()),
                               .control_inputs = std::move(controls),
                               .location = node->location},
                              {});
    copy.requested_device = node->requested_device->with_defaults(scopes.device);
    std::vector<Output>& results = outputs[node];
    for (int i = 0; i < std::max(1, copy.num_outputs()); ++i) results.push_back({&copy, i});
  }
  std::vector<Output> out;
  for (const Output& result : body.results) {
    const auto found = outputs.find(result.node);
    out.push_back(found == outputs.end() ? result : found->second[result.index]);
  }
  return out;
}

Output Function::only(const std::vector<Output>& results, Location at) const {
  const std::string name = body_->scope.substr(0, body_->scope.size() - 1);
  check(results.size() == 1, "function '", name, "' (", at, ") gives ", results.size(),
        " results: ", name, ".call({x}) returns them all");
  return results[0];
}

}  // namespace leat
