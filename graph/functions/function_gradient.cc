// SymbolicGradient: the gradient of a function. Inlines the function once more and adds our own
// gradients of its nodes.
#include "core/error.h"
#include "graph/endpoint.h"
#include "graph/functions/function_inliner.h"
#include "graph/gradient.h"
#include "graph/import/graph_def.h"
#include "graph/import/proto_codec.h"
#include "graph/proto/graph.pb.h"

namespace leat {
namespace {

using tensorflow::GraphDef;
using tensorflow::NodeDef;

std::string argument_name(size_t i) { return concat("argument_", i); }

Output output_named(const Graph& graph, const std::string& text) {
  const Endpoint name = *Endpoint::parse(text);
  return graph.find(name.node)->output(name.index);
}

}  // namespace

void FunctionInliner::add_symbolic_gradient(const Caller& caller) {
  const Types in = input_types(caller, "Tin"), out = types(caller.node, "Tout");
  if (out.size() > in.size())
    refuse(caller.node, concat("has ", in.size(), " inputs for ", out.size(), " arguments"));
  const tensorflow::NameAttrList& function = attr(caller.node, "f").func();
  if (const std::string_view own = library_.gradient_of(function.name()); !own.empty()) {
    tensorflow::NameAttrList gradient = function;
    gradient.set_name(std::string(own));
    return add_call(caller, gradient, out);
  }
  NodeDef inner_caller = caller.node;
  inner_caller.clear_device();
  FunctionCall call{.caller = inner_caller,
                    .function = function,
                    .scope = "forward",
                    .arguments = {},
                    .after = {}};
  GraphDef part;
  *part.mutable_versions() = def_.versions();
  for (size_t i = 0; i < in.size(); ++i) {
    if (i < out.size()) call.arguments.push_back(argument_name(i));
    NodeDef& argument = *part.add_node();
    argument.set_name(argument_name(i));
    argument.set_op("Placeholder");
    (*argument.mutable_attr())["dtype"] = type_attr(in[i]);
  }
  FunctionBody body = instantiate(library_, call);
  if (body.results.size() != in.size() - out.size()) {
    refuse(caller.node, concat("passes ", in.size() - out.size(), " gradients for the ",
                               body.results.size(), " results of '", call.function.name(), "'"));
  }
  enter(call);
  expansion_.gradients.push_back(caller.node.name());
  for (NodeDef& node : body.nodes) *part.add_node() = std::move(node);
  FunctionInliner(part, library_, expansion_).run();
  expansion_.gradients.pop_back();
  try {
    Graph graph;
    from_graph_def(part.SerializeAsString(), graph, {.allow_internal = true});
    std::vector<Output> xs, ys, dys, dx(out.size());
    for (size_t i = 0; i < out.size(); ++i) xs.push_back(output_named(graph, argument_name(i)));
    for (size_t i = 0; i < body.results.size(); ++i) {
      const Output y = output_named(graph, body.results[i]);
      if (!has_gradients(y.dtype())) continue;
      ys.push_back(y);
      dys.push_back(output_named(graph, argument_name(out.size() + i)));
    }
    if (!ys.empty()) dx = gradients(ys, xs, dys);
    add_gradients(caller, graph, dx, out);
  } catch (const Error& error) {
    refuse(caller.node, error.message(), error.node());
  }
  expansion_.active.pop_back();
}

// `dx`: of the caller's first inputs, of these types; none where no gradient flows.
void FunctionInliner::add_gradients(const Caller& caller, const Graph& graph,
                                    const std::vector<Output>& dx, const Types& types) {
  std::unordered_map<std::string, std::string> given;  // argument → what it is
  for (size_t i = 0; i < caller.inputs.size(); ++i)
    given.emplace(argument_name(i), caller.inputs[i]);
  const std::string prefix = scope(caller, "gradient");
  const auto called = [&](const std::string& text) {
    const bool is_control = text.starts_with('^');
    const auto argument = given.find(is_control ? text.substr(1) : text);
    if (argument != given.end()) return is_control ? signal_of(argument->second) : argument->second;
    return is_control ? concat("^", prefix, "/", text.substr(1)) : concat(prefix, "/", text);
  };
  for (const auto& node : graph.nodes()) {
    if (given.contains(node->name)) continue;
    NodeDef written, renamed;
    write_node(*node, /*assigned_device=*/false, written);
    renamed = written;
    renamed.set_name(called(written.name()));
    renamed.mutable_attr()->erase("_class");  // it has the names of before
    renamed.clear_input();
    for (const std::string& input : written.input()) renamed.add_input(called(input));
    if (written.input().empty()) {
      for (const std::string& signal : caller.after) renamed.add_input(signal);
    }
    if (renamed.device().empty()) renamed.set_device(caller.node.device());
    take_name(renamed.name(), prefix.size() + 1);
    add(std::move(renamed));
  }
  std::vector<std::string> results;
  for (size_t i = 0; i < dx.size(); ++i) {
    if (dx[i]) {
      results.push_back(called(Endpoint::of(dx[i]).short_name()));
    } else if (is_fetchable(types[i])) {
      results.push_back(
          add_part(caller, "zeros", "ZerosLike", {caller.inputs[i]}, {{"T", type_attr(types[i])}}));
    } else {
      refuse(caller.node, concat("argument ", i, " is a handle, which has no gradient"));
    }
  }
  add_results(caller, std::move(results), types, caller.after);
}

}  // namespace leat
