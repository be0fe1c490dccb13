// The functions of loops.h other than structure_loops().
#include <algorithm>
#include <charconv>

#include "graph/endpoint.h"
#include "graph/import/graph_def.h"
#include "graph/loops/frames.h"
#include "graph/loops/loops.h"

namespace leat {

Node* next_iteration(const Node& merge) {
  const auto found = merge.attrs.find(back_edge_attr);
  if (found == merge.attrs.end()) return nullptr;
  const std::string& source = found->second.get<std::string>();
  Node* next = merge.graph->find(node_of(source));
  check(next != nullptr, describe(merge), ": its input '", source, "' is not in the graph");
  return next;
}

bool is_loop_node(const Node& node) {
  return is_enter(node) || is_exit(node) || node.is("NextIteration") ||
         node.is("RefNextIteration") || node.is("LoopCond");
}

bool makes_step_state(const Node& node) {
  return !node.inputs.empty() && !node.outputs.empty() &&
         node.outputs[0].dtype == DType::resource && !node.outputs[0].is_ref &&
         node.op->is_stateful && !node.is("_Loop");
}

bool uses_step_state(const Node& node) {
  return std::any_of(node.inputs.begin(), node.inputs.end(), [](const Output& input) {
    if (input.dtype() != DType::resource) return false;
    const Node* source = input.node;
    while (is_loop_node(*source) || source->is("Switch") || source->is("Merge") ||
           source->is("Identity"))
      source = source->inputs[0].node;
    return makes_step_state(*source);
  });
}

LoopParts::LoopParts(const Node& loop)
    : predicate(loop.attr<std::string>("predicate")),
      next(loop.attr<std::vector<std::string>>("next")) {
  from_graph_def(loop.attr<std::string>("condition"), condition);
  from_graph_def(loop.attr<std::string>("body"), body);
  from_graph_def(loop.attr<std::string>("last"), last);
}

LoopFeed LoopFeed::parse(std::string_view name) {
  LoopFeed out{name.starts_with("variable:"), -1};
  const std::string_view digits = name.substr(name.find(':') + 1);
  std::from_chars(digits.data(), digits.data() + digits.size(), out.number);
  check((out.is_variable || name.starts_with("captured:")) && out.number >= 0, "'", name,
        "' is not an input of a while loop");
  return out;
}

std::string LoopFeed::name() const {
  return concat(is_variable ? "variable:" : "captured:", number);
}

}  // namespace leat
