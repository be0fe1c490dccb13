// connect: implements CallableOptions.tensor_connection. Codes and texts are TensorFlow's.
#include <algorithm>
#include <functional>
#include <queue>

#include "graph/endpoint.h"
#include "graph/passes/pipeline.h"

namespace leat {
namespace {

// (node id, output) of what is replaced → what replaces it.
using Sources = std::map<std::pair<int, int>, Output>;

Output find_source(const Graph& graph, const std::string& text) {
  const std::optional<Endpoint> name = Endpoint::parse(text);
  Node* node = name ? graph.find(name->node) : nullptr;
  check(node != nullptr, "Requested tensor connection from unknown node: \"", text, "\".");
  check(name->index < node->num_outputs(), "Requested tensor connection from unknown edge: \"",
        text, "\" (actual number of outputs = ", node->num_outputs(), ").");
  return node->output(name->index);
}

Output find_destination(const Graph& graph, const std::string& text) {
  const std::optional<Endpoint> name = Endpoint::parse(text);
  Node* node = name ? graph.find(name->node) : nullptr;
  if (node == nullptr) fail(Code::not_found, "FeedInputs: unable to find feed output ", text);
  check(name->index < node->num_outputs(), "FeedInputs: ", text, " should have output index < ",
        node->num_outputs());
  return node->output(name->index);
}

Sources resolve(const Graph& graph, const StepSignature& signature) {
  Sources sources;
  for (const auto& [to, from] : signature.connections) {
    const Output changed = find_destination(graph, to), source = find_source(graph, from);
    const bool is_fed = std::ranges::find(signature.feeds, to) != signature.feeds.end();
    const bool is_new = sources.insert({{changed.node->id, changed.index}, source}).second;
    check(is_new && !is_fed, "Endpoint \"", to, "\" fed more than once.");
    check(source.dtype() == changed.dtype(), "tensor connection from '", from, "' (",
          source.dtype(), ") to '", to, "' (", changed.dtype(), "): the dtypes must be the same");
  }
  return sources;
}

// A copy of a graph in which users of what is replaced use what replaces it, in an order that suits
// the new edges.
class Connected {
 public:
  Connected(const Graph& graph, const Sources& sources)
      : from_(graph), sources_(sources), copies_(graph.size()) {}

  Graph run() && {
    std::vector<int> waits(from_.size());  // by id: edges from nodes that have not come yet
    std::vector<std::vector<int>> users(from_.size());
    const auto add_edge = [&](const Node& first, const Node& then) {
      ++waits[then.id];
      users[first.id].push_back(then.id);
    };
    for (const auto& node : from_.nodes()) {
      for (const Output& input : node->inputs) add_edge(*source_of(input).node, *node);
      for (const Node* control : node->control_inputs) add_edge(*control, *node);
    }
    std::priority_queue<int, std::vector<int>, std::greater<>> ready;
    for (const auto& node : from_.nodes()) {
      if (waits[node->id] == 0) ready.push(node->id);
    }
    while (!ready.empty()) {
      const int id = ready.top();
      ready.pop();
      copy(*from_.nodes()[id]);
      for (const int user : users[id]) {
        if (--waits[user] == 0) ready.push(user);
      }
    }
    check(graph_.size() == from_.size(), "the tensor connections would create a cycle");
    return std::move(graph_);
  }

 private:
  Output source_of(const Output& input) const {
    const auto found = sources_.find({input.node->id, input.index});
    return found == sources_.end() ? input : found->second;
  }

  void copy(const Node& node) {
    std::vector<Output> inputs;
    for (const Output& input : node.inputs) {
      const Output source = source_of(input);
      inputs.push_back(copies_[source.node->id]->output(source.index));
    }
    std::vector<Node*> controls;
    for (const Node* control : node.control_inputs) controls.push_back(copies_[control->id]);
    copies_[node.id] = &graph_.copy(node, std::move(inputs), std::move(controls));
  }

  const Graph& from_;
  const Sources& sources_;
  std::vector<Node*> copies_;  // by old id
  Graph graph_;
};

}  // namespace

Graph connect(const Graph& graph, const StepSignature& signature) {
  const Sources sources = resolve(graph, signature);
  return Connected(graph, sources).run();
}

}  // namespace leat
