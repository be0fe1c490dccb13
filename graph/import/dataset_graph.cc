#include "graph/import/dataset_graph.h"

#include "graph/import/graph_def.h"
#include "graph/loops/loops.h"
#include "graph/rebuild.h"
#include "graph/shape_inference.h"

namespace leat {
namespace {

OpDef dataset_to_graph(const char* name, std::vector<std::string> attrs) {
  attrs.push_back("strip_device_assignment: bool = false");
  return {.name = name,
          .doc =
              "graph = the serialized GraphDef that makes input_dataset; "
              "its library lacks the functions that the graph calls.",
          .inputs = {"input_dataset: variant"},
          .outputs = {"graph: string"},
          .attrs = std::move(attrs),
          .shape = shapes::scalar(),
          .is_not_differentiable = true};
}

const Op first_op{dataset_to_graph("DatasetToGraph", {"stateful_whitelist: list(string) >= 0 = []",
                                                      "allow_stateful: bool = false"})};
const Op second_op{dataset_to_graph("DatasetToGraphV2", {"external_state_policy: int = 0"})};

// By id: the node and all that it needs.
std::vector<bool> ancestors(const Graph& graph, const Node& last) {
  std::vector<bool> needed(graph.size());
  std::vector<const Node*> stack;
  const auto need = [&](const Node* node) {
    if (node == nullptr || needed[node->id]) return;
    needed[node->id] = true;
    stack.push_back(node);
  };
  need(&last);
  while (!stack.empty()) {
    const Node& node = *stack.back();
    stack.pop_back();
    for (const Output& input : node.inputs) need(input.node);
    for (const Node* control : node.control_inputs) need(control);
    need(next_iteration(node));
  }
  return needed;
}

}  // namespace

bool is_dataset_to_graph(const Node& node) {
  return node.is("DatasetToGraphV2") || node.is("DatasetToGraph");
}

Tensor dataset_graph(const Graph& graph, const Node& node) {
  const std::vector<bool> needed = ancestors(graph, *node.inputs[0].node);
  const bool strips_devices = node.attr<bool>("strip_device_assignment");
  Rebuild rebuild(graph);
  for (const auto& old : graph.nodes()) {
    if (!needed[old->id]) continue;
    Node& copy = rebuild.copy(*old);
    if (strips_devices) copy.requested_device = {};
  }
  return Tensor::scalar(to_graph_def(std::move(rebuild).finish()));
}

}  // namespace leat
