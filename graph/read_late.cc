// read_late: what TensorFlow 1 programs expect of `w/read`, the Identity of a reference that every
// variable has. There its value is the variable's own memory: who uses it after an update sees the
// updated value, unless the Identity is ordered before the update. SyncReplicasOptimizer makes its
// tokens that way. So users that follow a write, by an Identity that neither follows nor precedes
// one, read the variable themselves.
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
    const Node& read = *input.node;
    if (!read.is("Identity") || !read.inputs[0].is_ref() || !read.control_inputs.empty()) return {};
    const int variable = variables_[read.inputs[0].node->id];
    if (variable < 0) return {};
    const std::vector<bool>& after = after_writes(variable);
    if (!after[user.id] || after[read.id]) return {};
    return precedes_write(read, variable) ? Output{} : read.inputs[0];
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

  // By node id: can it only run after some write to the variable? (Writers themselves count.)
  const std::vector<bool>& after_writes(int variable) {
    auto [found, is_new] = after_.try_emplace(variable);
    if (is_new) {
      found->second = reached([&](const Node& node) { return writes(node, variable); });
    }
    return found->second;
  }

  bool precedes_write(const Node& read, int variable) {
    auto [found, is_new] = precedes_.try_emplace(read.id);
    if (is_new) {
      const std::vector<bool> later = reached([&](const Node& node) { return &node == &read; });
      for (const auto& node : graph_.nodes())
        found->second = found->second || (later[node->id] && writes(*node, variable));
    }
    return found->second;
  }

  template <class Start>
  std::vector<bool> reached(Start starts) const {
    std::vector<bool> out(graph_.size());
    for (const auto& node : graph_.nodes()) {
      bool follows = starts(*node);
      for (const Output& input : node->inputs) follows = follows || out[input.node->id];
      for (const Node* source : node->control_inputs) follows = follows || out[source->id];
      out[node->id] = follows;
    }
    return out;
  }

  const Graph& graph_;
  std::vector<int> variables_;  // by node id: the variable that a ref output stands for
  std::unordered_map<int, std::vector<bool>> after_;
  std::unordered_map<int, bool> precedes_;
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
