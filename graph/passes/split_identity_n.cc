// split_identity_n: a handle's node identifies its variable or resource, so one node cannot pass on
// several. An IdentityN of handles becomes an Identity of each input.
#include <algorithm>

#include "graph/passes/pipeline.h"
#include "graph/passes/simplify/simplify.h"
#include "graph/rebuild.h"

namespace leat {
namespace {

bool hands_on_handles(const Node& node) {
  return node.is("IdentityN") &&
         std::any_of(node.outputs.begin(), node.outputs.end(),
                     [](const OutputSpec& output) { return output.is_handle(); });
}

// What a client fetches by its name are values: of the handles one is enough.
void keep_values(Node& node) {
  Output first;
  for (Output& input : node.inputs) {
    if (!input.is_handle()) continue;
    if (!first) first = input;
    input = first;
  }
}

}  // namespace

bool split_identity_n(Graph& graph, const StepSignature& signature) {
  const auto& nodes = graph.nodes();
  if (std::none_of(nodes.begin(), nodes.end(), [](const auto& n) { return hands_on_handles(*n); }))
    return false;
  const KeptNames kept(graph, signature);
  Rebuild rebuild(graph);
  for (const auto& node : graph.nodes()) {
    if (!hands_on_handles(*node)) {
      rebuild.copy(*node);
      continue;
    }
    if (kept.contains(*node)) keep_values(rebuild.copy(*node));
    std::vector<Output> outputs;
    std::vector<Node*> signals;
    for (const Output& input : rebuild.inputs_of(*node)) {
      Node& part = rebuild.graph().insert(
          {.op = "Identity",
           .name = graph.unique_name(concat(node->name, "/part_", outputs.size())),
           .inputs = {input},
           .attrs = {{"T", input.dtype()}},
           .control_inputs = rebuild.control_inputs_of(*node),
           .location = node->location},
          DeviceName());
      part.requested_device = node->requested_device;
      outputs.push_back(part.output());
      signals.push_back(&part);
    }
    rebuild.replace(*node, std::move(outputs), std::move(signals));
  }
  graph = std::move(rebuild).finish();
  return true;
}

}  // namespace leat
