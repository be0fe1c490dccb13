// read_late: what TensorFlow 1 programs expect of `w/read`, the Identity of a reference that every
// variable has. There its value is the variable's own memory: who uses it after an update sees the
// updated value, also if the Identity ran before the update (as it does when the loss needs it,
// too). Moving averages after a train op, target networks, and SyncReplicasOptimizer's tokens rely
// on it. So users that follow a write, by an Identity that does not, read the variable themselves.
#include <unordered_map>

#include "graph/pipeline.h"
#include "graph/rebuild.h"
#include "graph/signature.h"

namespace leat {
namespace {

class Reads {
 public:
  explicit Reads(const Graph& graph) : graph_(graph), variables_(graph.size(), -1) {
    for (const auto& node : graph.nodes()) {
      if (node->num_outputs() > 0 && node->outputs[0].is_ref) variables_[node->id] = origin(*node);
    }
  }

  // The variable to be read instead of input `i` of the node; none if it is to stay.
  Output late_source(const Node& user, const Output& input) {
    const Output variable = aliased(input);
    if (!variable) return {};
    for (const Node* write : writes_to(variables_[variable.node->id])) {
      const std::vector<bool>& after = after_[write->id];
      if (write != &user && after[user.id] && !after[input.node->id]) return variable;
    }
    return {};
  }

 private:
  int origin(const Node& node) const {
    for (const Output& input : node.inputs) {
      if (input.is_ref()) return variables_[input.node->id];
    }
    return node.id;
  }

  bool writes(const Node& node, int variable) const {
    if (node.is("IsVariableInitialized") || node.is("RefSwitch")) return false;
    for (const ArgRange& range : arg_ranges(node.op->schema.inputs, node.attrs)) {
      for (int i = range.begin; i < range.end && range.arg->is_ref; ++i) {
        if (variables_[node.inputs[i].node->id] == variable) return true;
      }
    }
    return false;
  }

  // The reference whose memory a value is, by way of Identities that nothing orders.
  Output aliased(Output value) const {
    while (value.node->is("Identity") && value.node->control_inputs.empty()) {
      value = value.node->inputs[0];
      if (value.is_ref()) return variables_[value.node->id] < 0 ? Output{} : value;
    }
    return {};
  }

  const std::vector<const Node*>& writes_to(int variable) {
    auto [found, is_new] = writes_.try_emplace(variable);
    if (!is_new) return found->second;
    for (const auto& node : graph_.nodes()) {
      if (!writes(*node, variable)) continue;
      found->second.push_back(node.get());
      after_.try_emplace(node->id, reached(*node));
    }
    return found->second;
  }

  // By node id: can it only run after `start`? (Which counts itself.)
  std::vector<bool> reached(const Node& start) const {
    std::vector<bool> out(graph_.size());
    for (const auto& node : graph_.nodes()) {
      bool follows = node.get() == &start;
      for (const Output& input : node->inputs) follows = follows || out[input.node->id];
      for (const Node* source : node->control_inputs) follows = follows || out[source->id];
      out[node->id] = follows;
    }
    return out;
  }

  const Graph& graph_;
  std::vector<int> variables_;  // by node id: the variable that a ref output stands for
  std::unordered_map<int, std::vector<const Node*>> writes_;  // by variable
  std::unordered_map<int, std::vector<bool>> after_;          // by a write's node id
};

}  // namespace

Graph read_late(const Graph& graph) {
  Reads reads(graph);
  Rebuild rebuild(graph);
  for (const auto& node : graph.nodes()) {
    Node& copy = rebuild.copy(*node);
    for (size_t i = 0; i < node->inputs.size(); ++i) {
      if (const Output variable = reads.late_source(*node, node->inputs[i]))
        copy.inputs[i] = rebuild.map(variable);
    }
  }
  return std::move(rebuild).finish();
}

}  // namespace leat
