// defer: turns a partial run's feeds and fetches into nodes that wait for the client's values and
// keep values for the client, on the task that it dialled. There they share one object
// (core/state/deferred_values.h), which the step is fed.
#include <algorithm>

#include "graph/endpoint.h"
#include "graph/loops/loops.h"
#include "graph/passes/pipeline.h"
#include "graph/rebuild.h"

namespace leat {
namespace {

const Node& node_of(const Graph& graph, const Endpoint& endpoint) {
  return *graph.find(endpoint.node);
}

}  // namespace

Graph defer(const Graph& graph, const DeviceName& master, StepSignature& signature) {
  Rebuild rebuild(graph);
  Graph& out = rebuild.graph();
  Node& values = out.insert({.op = "_Feed",
                             .name = graph.unique_name(deferred_values),
                             .attrs = {{"dtype", DType::variant},
                                       {"shape", Shape{}},
                                       {"name", concat(deferred_values, ":0")}}},
                            DeviceName());
  for (const auto& node : graph.nodes()) {
    if (!node->is("_Feed")) {
      rebuild.copy(*node);
      continue;
    }
    Node& awaited = out.insert({.op = "_AwaitFeed",
                                .name = node->name,
                                .inputs = {values.output()},
                                .attrs = {{"dtype", node->attr<DType>("dtype")},
                                          {"shape", node->attr<Shape>("shape")},
                                          {"name", node->attr<std::string>("name")}},
                                .location = node->location},
                               DeviceName());
    awaited.requested_device = master;
    rebuild.replace(*node, {awaited.output()}, {&awaited});
  }
  for (const std::string& fetch : signature.fetches) {
    const Endpoint name = *Endpoint::parse(fetch);
    const Node& old = node_of(graph, name);
    const Output value = rebuild.map(Output{const_cast<Node*>(&old), name.index});
    check(value.dtype() != DType::resource, "'", fetch,
          "' is a handle, which stays on its task: fetch what is computed from it");
    Node& delivered =
        out.insert({.op = "_DeliverFetch",
                    .name = out.unique_name(concat(name.node, "/_fetch_", name.index)),
                    .inputs = {values.output(), value},
                    .attrs = {{"T", value.dtype()}, {"name", fetch}},
                    .location = old.location},
                   DeviceName());
    delivered.requested_device = master;
    signature.targets.push_back(delivered.name);
  }
  signature.feeds = {concat(deferred_values, ":0")};
  signature.fetches.clear();
  signature = signature.normalised();
  return std::move(rebuild).finish();
}

FetchFeeds feeds_behind_fetches(const Graph& graph, const StepSignature& signature) {
  FetchFeeds out;
  for (const std::string& fetch : signature.fetches) {
    std::vector<std::string>& feeds = out[fetch];
    std::vector<bool> seen(graph.size());
    std::vector<const Node*> stack;
    const auto see = [&](const Node& node) {
      if (seen[node.id]) return;
      seen[node.id] = true;
      stack.push_back(&node);
    };
    see(node_of(graph, *Endpoint::parse(fetch)));
    while (!stack.empty()) {
      const Node& node = *stack.back();
      stack.pop_back();
      if (node.is("_Feed")) feeds.push_back(node.attr<std::string>("name"));
      for (const Output& input : node.inputs) see(*input.node);
      for (const Node* control : node.control_inputs) see(*control);
      if (const Node* next = next_iteration(node)) see(*next);
    }
    std::sort(feeds.begin(), feeds.end());
  }
  return out;
}

}  // namespace leat
