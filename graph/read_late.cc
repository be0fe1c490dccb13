// read_late: what TensorFlow 1 programs expect of `w/read`, the Identity of a reference that every
// variable has. There its value is the variable's own memory: who uses it after an update sees the
// updated value, also if the Identity ran before the update (as it does when the loss needs it,
// too). Moving averages after a train op, target networks, and SyncReplicasOptimizer's tokens rely
// on it. So users that follow a write, by an Identity that does not, read the variable themselves;
// in a branch of a condition, where the value comes through a Switch, through a RefSwitch. A user
// on another device gets what was sent there: the value before an update that waits for an answer
// from elsewhere, as gradients are.
//
// A Merge of references gives the value of the one that came: here they are read where they end.
#include <algorithm>
#include <optional>
#include <tuple>
#include <unordered_map>

#include "graph/pipeline.h"
#include "graph/rebuild.h"
#include "graph/signature.h"
#include "graph/variable_accesses.h"

namespace leat {
namespace {

class Reads {
 public:
  Reads(Graph& graph, const PlacementOptions* placement)
      : graph_(graph), placement_(placement), accesses_(graph) {}

  // Is the input to be read by the user itself?
  bool is_late(const Node& user, const Output& input) {
    const Output variable = aliased(input);
    if (!variable) return false;
    const std::vector<Node*>& writers = accesses_.writers(accesses_.variable_of(*variable.node));
    return std::any_of(writers.begin(), writers.end(), [&](Node* writer) {
      if (writer == &user) return false;
      const std::vector<bool>& later = after(*writer);
      return later[user.id] && !later[input.node->id] &&
             !is_sent_before(user, input, variable, *writer);
    });
  }

  // What a value is the memory of, if it is_late(): a reference in the new graph.
  Output reference(const Output& value, Rebuild& rebuild) {
    const Node& node = *value.node;
    if (value.is_ref()) return rebuild.map(value);
    if (node.is("Identity")) return reference(node.inputs[0], rebuild);
    Node*& made = switches_[node.id];
    if (made == nullptr) {
      made = &rebuild.graph().insert(
          {.op = "RefSwitch",
           .name = graph_.unique_name(node.name + "/late"),
           .inputs = {reference(node.inputs[0], rebuild), rebuild.map(node.inputs[1])},
           .attrs = {{"T", value.dtype()}},
           .control_inputs = rebuild.control_inputs_of(node),
           .location = node.location},
          DeviceName());
    }
    return made->output(value.index);
  }

 private:
  // The reference whose memory a value is, by way of Identities that nothing orders, and Switches.
  Output aliased(Output value) const {
    while ((value.node->is("Identity") && value.node->control_inputs.empty()) ||
           value.node->is("Switch")) {
      value = value.node->inputs[0];
      if (value.is_ref()) return accesses_.variable_of(*value.node) < 0 ? Output{} : value;
    }
    return {};
  }

  // Whether the input leaves the variable's device long before the write, which waits for an answer
  // from elsewhere meanwhile. If not, it is a matter of chance what TensorFlow sends.
  bool is_sent_before(const Node& user, const Output& input, const Output& variable,
                      const Node& writer) {
    if (placement_ == nullptr) return false;
    if (!devices_) devices_ = devices_of_nodes();
    const DeviceName& home = (*devices_)[variable.node->id];
    const Node* to = &user;
    const Node* from = input.node;
    while (from != variable.node && (*devices_)[from->id] != home) {
      to = from;
      from = from->inputs[0].node;
    }
    if ((*devices_)[to->id] == home) return false;
    const std::vector<bool> before_sent = before(*from), before_write = before(writer);
    return std::any_of(graph_.nodes().begin(), graph_.nodes().end(), [&](const auto& node) {
      return before_write[node->id] && !before_sent[node->id] && (*devices_)[node->id] != home &&
             needs_another_device(*node);
    });
  }

  bool needs_another_device(const Node& node) const {
    const auto is_elsewhere = [&](const Node* other) {
      return (*devices_)[other->id] != (*devices_)[node.id];
    };
    return std::any_of(node.inputs.begin(), node.inputs.end(),
                       [&](const Output& input) { return is_elsewhere(input.node); }) ||
           std::any_of(node.control_inputs.begin(), node.control_inputs.end(), is_elsewhere);
  }

  // What a node waits for, by node id.
  std::vector<bool> before(const Node& last) const {
    std::vector<bool> out(graph_.size());
    std::vector<const Node*> pending{&last};
    while (!pending.empty()) {
      const Node* node = pending.back();
      pending.pop_back();
      const auto add = [&](const Node* earlier) {
        if (!out[earlier->id]) pending.push_back(earlier);
        out[earlier->id] = true;
      };
      for (const Output& value : node->inputs) add(value.node);
      for (const Node* control : node->control_inputs) add(control);
    }
    return out;
  }

  // Where place() would put them: it has its turn when late reads are known. Rarely needed.
  std::vector<DeviceName> devices_of_nodes() {
    std::vector<std::pair<DeviceName, std::string>> before;
    for (const auto& node : graph_.nodes())
      before.emplace_back(node->assigned_device, node->placement_reason);
    PlacementOptions quiet = *placement_;
    quiet.log_placement = false;
    try {
      place(graph_, quiet);
    } catch (const Error&) {  // which place() tells in its turn
    }
    std::vector<DeviceName> out;
    for (const auto& node : graph_.nodes()) {
      out.push_back(std::move(node->assigned_device));
      std::tie(node->assigned_device, node->placement_reason) = std::move(before[node->id]);
    }
    return out;
  }

  const std::vector<bool>& after(Node& node) {
    auto [found, is_new] = after_.try_emplace(node.id);
    if (is_new) found->second = followers(graph_, {&node});
    return found->second;
  }

  Graph& graph_;
  const PlacementOptions* const placement_;
  const VariableAccesses accesses_;
  std::optional<std::vector<DeviceName>> devices_;    // by node id
  std::unordered_map<int, std::vector<bool>> after_;  // by node id, twice
  std::unordered_map<int, Node*> switches_;           // RefSwitches by the id of a Switch
};

bool is_merge(const Node& node) { return node.is("Merge") || node.is("RefMerge"); }

// As a Merge of values.
void copy_merge(const Node& node, Rebuild& rebuild) {
  NodeSpec spec{.op = "Merge",
                .name = node.name,
                .inputs = rebuild.inputs_of(node),
                .attrs = node.attrs,
                .control_inputs = rebuild.control_inputs_of(node),
                .location = node.location};
  for (size_t i = 0; i < spec.inputs.size(); ++i) {
    if (!spec.inputs[i].is_ref()) continue;
    Node& read =
        rebuild.graph().insert({.op = "Identity",
                                .name = node.graph->unique_name(concat(node.name, "/read_", i)),
                                .inputs = {spec.inputs[i]},
                                .attrs = {{"T", spec.inputs[i].dtype()}},
                                .location = node.location},
                               DeviceName());
    read.requested_device = node.requested_device;
    spec.inputs[i] = read.output();
  }
  Node& merge = rebuild.graph().insert(std::move(spec), DeviceName());
  merge.requested_device = node.requested_device;
  rebuild.replace(node, {merge.output(0), merge.output(1)}, {&merge});
}

void check_references(const Node& node) {
  for (const ArgRange& range : arg_ranges(node.op->schema.inputs, node.attrs)) {
    for (int i = range.begin; i < range.end && range.arg->is_ref; ++i) {
      if (!node.inputs[i].node->is("RefMerge") || is_merge(node)) continue;
      fail(Code::unimplemented,
           with_node(concat("it writes to '", node.inputs[i].name(),
                            "', which is one variable or another: write in each branch"),
                     node.name));
    }
  }
}

}  // namespace

Graph read_late(Graph& graph, const PlacementOptions* placement) {
  Reads reads(graph, placement);
  Rebuild rebuild(graph);
  for (const auto& node : graph.nodes()) {
    if (is_merge(*node)) {
      copy_merge(*node, rebuild);
      continue;
    }
    check_references(*node);
    std::vector<Output> inputs;  // before the node: what they need comes first
    for (const Output& input : node->inputs) {
      inputs.push_back(reads.is_late(*node, input) ? reads.reference(input, rebuild)
                                                   : rebuild.map(input));
    }
    rebuild.copy(*node).inputs = std::move(inputs);
  }
  return std::move(rebuild).finish();
}

}  // namespace leat
