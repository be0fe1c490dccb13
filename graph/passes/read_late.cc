// read_late: what TensorFlow 1 programs expect of `w/read`, the Identity of a reference that every
// variable has. There its value is the variable's own memory: a node that uses it after an update
// sees the updated value, even if the Identity ran before the update (as it does when the loss
// needs it, too). Moving averages after a train op, target networks, and SyncReplicasOptimizer's
// tokens rely on it. So a node that runs after a write, but uses an Identity that does not, reads
// the variable itself; in a branch of a condition, where the value comes through a Switch, it reads
// through a RefSwitch. A node on another device gets the value that was sent there: the one before
// an update that waits for a value from elsewhere, as updates wait for gradients.
//
// A Merge of references gives the value of the one that arrived: here references are read before
// the Merge.
#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <tuple>
#include <unordered_map>
#include <utility>

#include "graph/passes/pipeline.h"
#include "graph/passes/variable_accesses.h"
#include "graph/rebuild.h"
#include "graph/signature.h"

namespace leat {
namespace {

class Reads {
 public:
  Reads(Graph& graph, const PlacementOptions* placement)
      : graph_(graph), placement_(placement), accesses_(graph) {
    find_late();
  }

  bool has_late() const { return !late_.empty(); }
  // Is the input to be read by the user itself?
  bool is_late(const Node& user, int input) const { return late_.contains({user.id, input}); }

  // What a value is the memory of, if it is_late(): a reference in the new graph.
  Output reference(Output value, Rebuild& rebuild) {
    std::vector<Output> switched;  // outputs of Switches, the last one first
    for (; !value.is_ref(); value = value.node->inputs[0]) {
      if (!value.node->is("Identity")) switched.push_back(value);
    }
    Output out = rebuild.map(value);
    for (; !switched.empty(); switched.pop_back()) {
      const auto& [node, index] = switched.back();
      Node*& made = switches_[node->id];
      if (made == nullptr) {
        made = &rebuild.graph().insert(
            {.op = "RefSwitch",
             .name = std::as_const(graph_).unique_name(node->name + "/late"),
             .inputs = {out, rebuild.map(node->inputs[1])},
             .attrs = {{"T", node->outputs[index].dtype}},
             .control_inputs = rebuild.control_inputs_of(*node),
             .location = node->location},
            DeviceName());
      }
      out = made->output(index);
    }
    return out;
  }

 private:
  struct Use {
    Node* user;
    int input;
  };

  void find_late() {
    const std::vector<Output> aliases = aliased();
    std::map<int, std::vector<Use>> uses;  // of the memory of a variable that is written to
    for (const auto& node : graph_.nodes()) {
      for (size_t i = 0; i < node->inputs.size(); ++i) {
        const Output& input = node->inputs[i];
        const Output variable = input.is_ref() ? Output{} : aliases[input.node->id];
        if (!variable) continue;
        const int id = accesses_.variable_of(*variable.node);
        // Ids are in order: what comes before all writes follows none.
        if (const auto& writers = accesses_.writers(id);
            !writers.empty() && writers.front()->id < node->id)
          uses[id].push_back({node.get(), static_cast<int>(i)});
      }
    }
    if (uses.empty()) return;
    const Consumers consumers(graph_);
    reached_.resize(graph_.size());
    for (const auto& [id, users] : uses) {
      for (Node* writer : accesses_.writers(id)) {
        follow(*writer, *users.back().user, consumers);
        for (const auto& [user, i] : users) {
          const Output& input = user->inputs[i];
          if (writer == user || !follows(*user) || follows(*input.node)) continue;
          if (is_sent_before(*user, input, aliases[input.node->id], *writer)) continue;
          late_.emplace(user->id, i);
        }
      }
    }
  }

  // By node id: the reference whose memory its value is, by way of Identities that nothing orders,
  // and Switches.
  std::vector<Output> aliased() const {
    std::vector<Output> out(graph_.size());
    for (const auto& node : graph_.nodes()) {
      if (!(node->is("Identity") && node->control_inputs.empty()) && !node->is("Switch")) continue;
      const Output& input = node->inputs[0];
      if (!input.is_ref()) {
        out[node->id] = out[input.node->id];
      } else if (accesses_.variable_of(*input.node) >= 0) {
        out[node->id] = input;
      }
    }
    return out;
  }

  // Finds what follows the node, and comes no later than `last` in the graph: follows() tells.
  void follow(Node& node, const Node& last, const Consumers& consumers) {
    ++round_;
    std::vector<Node*> pending{&node};
    reached_[node.id] = round_;
    while (!pending.empty()) {
      const Node& from = *pending.back();
      pending.pop_back();
      for (const Consumers::Use& use : consumers.of(from)) {
        if (use.node->id > last.id || reached_[use.node->id] == round_) continue;
        reached_[use.node->id] = round_;
        pending.push_back(use.node);
      }
    }
  }
  bool follows(const Node& node) const { return reached_[node.id] == round_; }

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

  Graph& graph_;
  const PlacementOptions* const placement_;
  const VariableAccesses accesses_;
  std::optional<std::vector<DeviceName>> devices_;  // by node id
  std::set<std::pair<int, int>> late_;              // (id of the user, input)
  std::vector<int> reached_;                        // by node id: the round that came there last
  int round_ = 0;
  std::unordered_map<int, Node*> switches_;  // RefSwitches by the id of a Switch
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
      fail_at(node.name, Code::unimplemented, "it writes to '", node.inputs[i].name(),
              "', which may be one variable or another: write in each branch");
    }
  }
}

}  // namespace

bool read_late(Graph& graph, const PlacementOptions* placement) {
  bool has_work = false;
  for (const auto& node : graph.nodes()) {
    has_work =
        has_work || is_merge(*node) || std::ranges::any_of(node->outputs, &OutputSpec::is_ref);
    if (!is_merge(*node)) check_references(*node);
  }
  if (!has_work) return false;
  Reads reads(graph, placement);
  if (!reads.has_late() &&
      std::ranges::none_of(graph.nodes(), [](const auto& node) { return is_merge(*node); }))
    return false;
  Rebuild rebuild(graph);
  for (const auto& node : graph.nodes()) {
    if (is_merge(*node)) {
      copy_merge(*node, rebuild);
      continue;
    }
    std::vector<Output> inputs;  // before the node: what they need comes first
    for (size_t i = 0; i < node->inputs.size(); ++i) {
      const Output& input = node->inputs[i];
      inputs.push_back(reads.is_late(*node, static_cast<int>(i)) ? reads.reference(input, rebuild)
                                                                 : rebuild.map(input));
    }
    rebuild.copy(*node).inputs = std::move(inputs);
  }
  graph = std::move(rebuild).finish();
  return true;
}

}  // namespace leat
