#include "frontends/cpp/control_flow/function.h"

#include "frontends/cpp/control_flow/node_copies.h"

namespace leat {

struct Function::Body {
  std::string scope;  // "f/": all of its nodes are called so
  std::vector<Output> arguments, results;
  std::vector<const Node*> nodes;  // what the results need, but the arguments
};

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
  const std::string name = body.scope.substr(0, body.scope.size() - 1);
  const std::string title = concat("a call of the function '", name, "' (", at, ")");
  const size_t taken = body.arguments.size();
  check(arguments.size() == taken, title, ": it takes ", taken,
        taken == 1 ? " argument, not " : " arguments, not ", arguments.size());
  std::vector<Output> values;
  for (size_t i = 0; i < arguments.size(); ++i) {
    const DType dtype = body.arguments[i].dtype();
    check(arguments[i].is_constant() || arguments[i].output(), title, ": argument ", i,
          " is an empty Output");
    const Output argument = arguments[i].as(graph, dtype);
    check(argument.dtype() == dtype, title, ": argument ", i, " must be ", dtype, ", not ",
          argument.dtype());
    values.push_back(argument);
  }
  const NameScope scope(graph, name);
  NodeCopies copies(graph, body.nodes, [&](const std::string& name) {
    return name.starts_with(body.scope) ? scope.name() + name.substr(body.scope.size()) : name;
  });
  for (size_t i = 0; i < values.size(); ++i) copies.replace(body.arguments[i], values[i]);
  const Graph::Scopes& scopes = graph.scopes();
  for (const Node* node : body.nodes) copies.copy(*node, scopes.control_inputs, scopes.device);
  std::vector<Output> out;
  for (const Output& result : body.results) out.push_back(copies.of(result));
  return out;
}

Output Function::only(const std::vector<Output>& results, Location at) const {
  const std::string name = body_->scope.substr(0, body_->scope.size() - 1);
  check(results.size() == 1, "function '", name, "' (", at, ") gives ", results.size(),
        " results: ", name, ".call({x}) returns them all");
  return results[0];
}

}  // namespace leat
